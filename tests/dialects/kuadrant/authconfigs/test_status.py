"""The conditions of an AuthConfig, and its entry in lists."""

from __future__ import annotations

import pytest

from eastgate import dialects
from eastgate.reports.cluster import Cluster
from tests.dialects.kuadrant.authconfigs.configs import Manifest, authority, config

# AuthConfigs, and the conditions of the last of them: type, status and reason.
READY = [("Ready", "True", "Reconciled"), ("Available", "True", "HostsLinked")]
PARTLY = [("Ready", "False", "HostsNotLinked"), ("Available", "True", "HostsLinked")]
NOT = [("Ready", "False", "HostsNotLinked"), ("Available", "False", "HostsNotLinked")]
STATUS = [
    ([config("n/a", "x.io")], READY),
    ([config("m/a", "y.io", day=1), config("n/b", "x.io", day=2)], READY),
    ([config("m/a", "x.io", day=1), config("n/b", "x.io", "y.io", day=2)], PARTLY),
    ([config("m/a", "*.io", day=1), config("n/b", "x.io", "*.y.io", day=2)], NOT),
    ([config("m/a", "*.io", day=2), config("n/b", "x.io", day=1)], READY),
]


@pytest.mark.parametrize(("configs", "expected"), STATUS)
def test_conditions_say_which_hosts_are_linked(configs: list[Manifest], expected: list[tuple[str, str, str]]) -> None:
    of = authority(*configs)
    policy = next(each for each in of.policies if each.ref.name == configs[-1]["metadata"]["name"])
    shown = dialects.conditions(policy, of.policies, of.settings, of.world)
    assert [(each.type, each.status, each.reason) for each in shown] == expected


def test_the_message_says_who_has_a_host() -> None:
    of = authority(config("m/a", "*.io", day=1), config("n/b", "x.io", "y.com", day=2))
    ready, _ = dialects.conditions(of.policies[1], of.policies, of.settings, of.world)
    assert ready.message == "One or more hosts are not linked to the resource: x.io is linked to AuthConfig/m/a"


def test_the_summary_counts_what_there_is() -> None:
    spec = {
        "authentication": {"a": {"anonymous": {}}, "b": {"plain": {"selector": "request.host"}}},
        "metadata": {"c": {"http": {"url": "http://c.example"}}},
        "authorization": {"d": {"patternMatching": {"patterns": [{"predicate": "true"}]}}},
        "response": {
            "success": {
                "headers": {"e": {"plain": {"value": 1}}},
                "dynamicMetadata": {"f": {"json": {"properties": {}}}},
            }
        },
    }
    of = authority(config("m/a", "*.io", day=1), config("n/b", "y.com", "x.io", "b.com", day=2, spec=spec))
    policy = of.policies[1]
    assert dialects.dialect_of(policy).summarize(policy, of.policies, of.settings, of.world) == {
        "ready": False,
        "hostsReady": ["b.com", "y.com"],
        "numHostsReady": "2/3",
        "numIdentitySources": 2,
        "numMetadataSources": 1,
        "numAuthorizationPolicies": 1,
        "numResponseItems": 2,
        "festivalWristbandEnabled": False,
    }


def test_a_policy_affects_the_hosts_that_it_decides_about() -> None:
    cluster = Cluster(authority(config("m/a", "*.io", day=1), config("n/b", "x.io", "y.com", day=2)))
    affected = {policy.ref.name: [str(point) for point in cluster.affected(policy)] for policy in cluster.policies}
    assert affected == {"a": ["host *.io", "host x.io"], "b": ["host y.com"]}
    assert {ref.name: count for ref, count in cluster.affected_counts.items()} == {"a": 2, "b": 1}
