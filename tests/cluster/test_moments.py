"""Times of objects, as they are compared."""

from __future__ import annotations

import pytest

from eastgate.cluster import moment


def test_moments_sort_by_age_whatever_their_zone() -> None:
    written = ["2026-01-01T01:00:00+02:00", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:01Z"]
    moments = [moment(text) for text in written]
    assert None not in moments
    assert moments == sorted(map(str, moments))


@pytest.mark.parametrize(
    "value", [None, "", 0, "yesterday", "2026-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
def test_what_is_no_moment_is_none(value: object) -> None:
    assert moment(value) is None
