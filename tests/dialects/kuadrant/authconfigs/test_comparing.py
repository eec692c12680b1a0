"""Two sets of AuthConfigs: equal hosts are proven equal, and hosts with possible differences are named."""

from __future__ import annotations

import pytest

from eastgate.reports.diff.model import FailOn
from eastgate.reports.diff.run import diff
from tests.dialects.kuadrant.authconfigs.configs import Manifest, authority, config

WIDE, NARROW = config("n/wide", "*.io", day=1), config("n/narrow", "x.io", "y.com", day=2)
CLOSED = {"authorization": {"nobody": {"patternMatching": {"patterns": [{"predicate": "false"}]}}}}
KEYS = {"authentication": {"keys": {"apiKey": {"selector": {"matchLabels": {"of": "us"}}}}}}


def secret(key: str) -> Manifest:
    metadata = {"name": "key", "namespace": "n", "labels": {"of": "us"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"api_key": key}}


# The two sides, and the hosts with possible differences.
SIDES = [
    ([WIDE, NARROW], [NARROW, WIDE], []),
    ([WIDE, NARROW], [WIDE, config("n/narrow", "x.io", "y.com", day=3)], []),  # it is still the newer AuthConfig
    ([WIDE, NARROW], [WIDE, config("n/narrow", "x.io", "y.com", day=2, spec=CLOSED)], ["host:y.com"]),
    ([WIDE], [WIDE, NARROW], ["host:y.com"]),  # x.io is taken
    ([config("n/wide", "*.io", day=1)], [config("n/wide", "*.io", "x.com", day=1)], ["host:x.com"]),
    ([config("n/a", "x.io", spec=KEYS), secret("a")], [config("n/a", "x.io", spec=KEYS), secret("b")], ["host:x.io"]),
]


@pytest.mark.parametrize(("before", "after", "hosts"), SIDES)
def test_hosts_that_may_be_decided_otherwise(before: list[Manifest], after: list[Manifest], hosts: list[str]) -> None:
    report = diff(authority(*before), authority(*after))
    assert [(each.reason.value, each.subject) for each in report.unproven] == [("hostChanged", host) for host in hosts]
    assert report.changes == ()
    assert report.status(FailOn.ANY) == (3 if hosts else 0)


def test_hosts_are_destinations_that_are_on_one_side_or_on_both() -> None:
    report = diff(authority(WIDE), authority(WIDE, NARROW))
    assert (report.added, report.removed) == (("host:x.io", "host:y.com"), ())
    assert report.common == 2  # a host, and an invented pod that no policy selects
