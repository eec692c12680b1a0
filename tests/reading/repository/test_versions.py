"""Constraints on versions of charts have the same meaning as in helm."""

from __future__ import annotations

import pytest

from eastgate.reading.repository.versions import satisfies, version_key

FIT = {
    "1.2.3": ("1.2.3 1.2.3+build v1.2.3", "1.2.4 1.2.3-rc.1"),
    "=1.2.3": ("1.2.3", "1.2.4"),
    "1.2": ("1.2.0 1.2.9", "1.3.0 1.1.9"),
    "1.x": ("1.0.0 1.9.9", "2.0.0 0.9.0"),
    "*": ("0.0.1 7.0.0", "7.0.0-alpha"),
    "^1.48.0": ("1.48.0 1.61.3", "2.0.0 1.47.9"),
    "^0.80.5": ("0.80.6", "0.81.0 0.80.4"),
    "^0.0.3": ("0.0.3", "0.0.4"),
    "^0.0": ("0.0.9", "0.1.0"),
    "^0": ("0.9.0", "1.0.0"),
    "~1.2.3": ("1.2.3 1.2.9", "1.3.0"),
    "~1": ("1.9.0", "2.0.0"),
    ">=1.0 <2.0": ("1.0.0 1.5.0", "2.0.0 0.9.0"),
    ">= 1.0, < 2.0": ("1.5.0", "2.0.0"),
    ">1.1": ("1.2.0", "1.1.5 1.1.0"),
    "<=1.1": ("1.1.5", "1.2.0"),
    "!=1.2.3": ("1.2.4", "1.2.3"),
    "1.0 - 1.2": ("1.0.0 1.2.5", "1.3.0"),
    "1.x || >=3": ("1.4.0 3.1.0", "2.0.0"),
    ">=1.0.0-0": ("1.0.0-rc1 1.0.0", "0.9.0"),
    ">1.0.0-rc.2": ("1.0.0 1.0.0-rc.10", "1.0.0-rc.1"),
    "": ("", "1.0.0"),
    "latest": ("", "1.0.0"),
}


@pytest.mark.parametrize("constraint", FIT)
def test_versions_that_meet_a_constraint(constraint: str) -> None:
    good, bad = (versions.split() for versions in FIT[constraint])
    assert [version for version in good if not satisfies(version, constraint)] == []
    assert [version for version in bad if satisfies(version, constraint)] == []


def test_versions_are_ordered() -> None:
    ordered = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-rc.2", "1.0.0-rc.11", "1.0.0", "1.0.1", "1.10.0", "10.0.0"]
    keys = [key for version in ordered[::-1] if (key := version_key(version)) is not None]
    assert sorted(keys) == keys[::-1]
    assert version_key("one") is None
    assert not satisfies("one", "*")
