"""The status of an AuthPolicy of today."""

from __future__ import annotations

import pytest

from eastgate import Settings
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.policy import conditions_of
from tests.dialects.kuadrant.manifests import GATEWAY, ROUTE, merged, policy_named, policy_on, rules
from tests.differential.world import Manifest
from tests.worlds.test_generated_clusters import authority_of


def _statuses(*policies: Manifest) -> dict[str, list[tuple[str, str, str]]]:
    cluster = Cluster(authority_of([GATEWAY, ROUTE, *policies], Settings()))
    return {
        policy.ref.name: [(each.type, each.status, each.reason) for each in conditions_of(cluster, policy)]
        for policy in cluster.policies
    }


def test_a_policy_that_is_being_deleted_overrides_none_and_has_no_conditions() -> None:
    older = policy_named("older", creationTimestamp="2026-01-01T00:00:00Z")
    newer = {"creationTimestamp": "2026-02-01T00:00:00Z"}
    accepted, enforced = ("Accepted", "True", "Accepted"), ("Enforced", "True", "Enforced")
    assert _statuses(older, policy_named("newer", **newer)) == {
        "older": [accepted, ("Enforced", "False", "Overridden")],
        "newer": [accepted, enforced],
    }
    deleted = policy_named("newer", **newer, deletionTimestamp="2026-03-01T00:00:00Z")
    assert _statuses(older, deleted) == {"older": [accepted, enforced], "newer": []}


_WHOLE = "AuthPolicy has been successfully enforced"
_BY_ROUTE = "AuthPolicy is overridden by [n/of-route]"
_BY_GATEWAY = "AuthPolicy is overridden by [n/of-gateway]"
_PART = "AuthPolicy has been partially enforced"
_NOWHERE = "AuthPolicy is not in the path to any existing routes"


@pytest.mark.parametrize(
    ("gateway", "route", "messages"),
    [
        pytest.param(rules("a"), rules("b"), (_BY_ROUTE, _WHOLE), id="atomic-defaults"),
        pytest.param(
            {"overrides": rules("a")},
            rules("b"),
            (_WHOLE, _BY_GATEWAY),
            id="overrides",
        ),
        pytest.param(merged("defaults", "a", "b"), rules("b"), (_PART, _WHOLE), id="merged-defaults"),
        pytest.param(merged("overrides", "a", "b"), rules("b", "c"), (_WHOLE, _PART), id="merged-overrides"),
        pytest.param(merged("defaults", "a"), rules("b"), (_WHOLE, _WHOLE), id="other-names"),
        pytest.param(merged("defaults", "b"), rules("b"), (_BY_ROUTE, _WHOLE), id="same-name"),
    ],
)
def test_what_is_enforced_is_told_as_kuadrant_operator_does(
    gateway: dict[str, object], route: dict[str, object], messages: tuple[str, str]
) -> None:
    shown = _messages(policy_on("Gateway", "of-gateway", gateway), policy_on("HTTPRoute", "of-route", route))
    assert (shown["of-gateway"][1], shown["of-route"][1]) == messages


@pytest.mark.parametrize(
    ("policy", "messages"),
    [
        (policy_on("Gateway", "p", rules("a"), target="other"), ["AuthPolicy target other was not found"]),
        (policy_on("Gateway", "p", rules("a"), section="https"), ["AuthPolicy target gw#https was not found"]),
        (policy_on("HTTPRoute", "p", rules("a"), section="rule-2"), ["AuthPolicy target toys#rule-2 was not found"]),
        (policy_on("HTTPRoute", "p", rules("a"), section="rule-1"), ["AuthPolicy has been accepted", _WHOLE]),
        (policy_on("Gateway", "p", rules("a"), section="admin"), ["AuthPolicy has been accepted", _NOWHERE]),
    ],
)
def test_a_target_may_be_a_section(policy: Manifest, messages: list[str]) -> None:
    assert _messages(policy)["p"] == messages


def _messages(*policies: Manifest) -> dict[str, list[str]]:
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}, {"name": "admin", "port": 81, "protocol": "HTTP"}]
    gateway = GATEWAY | {"spec": {"gatewayClassName": "any", "listeners": listeners}}
    spec = {
        "parentRefs": [{"name": "gw", "sectionName": "http"}],
        "rules": [{"backendRefs": [{"name": "t", "port": 80}]}],
    }
    cluster = Cluster(authority_of([gateway, ROUTE | {"spec": spec}, *policies], Settings()))
    return {policy.ref.name: [each.message for each in conditions_of(cluster, policy)] for policy in cluster.policies}
