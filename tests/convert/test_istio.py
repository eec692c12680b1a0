"""Conversions to Istio, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.settings import Settings
from tests.convert.conversions import ALL_ASSUMED, Manifest, Outcome, converted


def policy(name: str, action: str = "ALLOW", level: str | None = None, **more: Any) -> Manifest:
    spec: Manifest = {
        "targetRefs": [{"kind": "Pod", "selector": more.pop("selector", {"matchLabels": {"app": "web"}})}],
        "action": action,
        "rules": more.pop("rules", [{}]),
    }
    if level is not None:
        spec["enforcementLevel"] = level
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": "shop", **more},
        "spec": spec,
    }


def to_istio(*policies: Manifest, assumed: bool = True, **settings: str) -> Outcome:
    return converted(list(policies), "istio", Settings.from_mapping(settings), ALL_ASSUMED if assumed else None)


def principals(outcome: Outcome) -> list[str]:
    return [
        name
        for one in outcome.written
        for rule in one["spec"]["rules"]
        for source in rule.get("from", ())
        for name in source["source"]["principals"]
    ]


@pytest.mark.parametrize(
    ("action", "expected"),
    [("ALLOW", ["mesh.example/ns/a/sa/x"]), ("DENY", ["cluster.local/ns/a/sa/x", "mesh.example/ns/a/sa/x"])],
)
def test_cluster_local_is_every_trust_domain_of_the_mesh(action: str, expected: list[str]) -> None:
    who = {"identities": ["spiffe://cluster.local/ns/a/sa/x"], "serviceAccounts": ["a/x"]}
    outcome = to_istio(policy("p", action, rules=[{"authorizationSource": who}]), trustDomain="mesh.example")
    assert principals(outcome) == expected
    assert outcome.losses == ["EG7105"]


def test_a_rule_for_nobody_is_not_a_rule_for_everybody() -> None:
    (one,) = to_istio(policy("p", rules=[{"authorizationSource": {}}])).written
    assert one["spec"]["rules"] == []


def test_a_deny_of_nothing_still_closes() -> None:
    (one,) = to_istio(policy("p", "DENY", rules=[{"networkAttributes": {"ports": []}}])).written
    assert (one["spec"]["action"], one["spec"]["rules"]) == ("ALLOW", [])


def test_a_deny_needs_no_allow_of_nothing_where_an_allow_is_on_the_same_pods() -> None:
    outcome = to_istio(policy("p", "DENY"), policy("q"))
    assert [one["metadata"]["name"] for one in outcome.written] == ["p", "q"]


def test_both_levels_on_the_same_pods_become_rules_that_ask_for_both() -> None:
    network = policy("n", rules=[{"authorizationSource": {"serviceAccounts": ["cart", "web"]}}])
    application = policy(
        "a",
        level="APPLICATION",
        rules=[
            {
                "authorizationSource": {"serviceAccounts": ["shop/*"]},
                "networkAttributes": {"ports": [80]},
                "applicationAttributes": {"methods": ["GET"]},
            }
        ],
    )
    (one,) = to_istio(network, application).written
    assert one["spec"]["rules"] == [
        {
            "from": [{"source": {"principals": ["cluster.local/ns/shop/sa/cart", "cluster.local/ns/shop/sa/web"]}}],
            "to": [{"operation": {"ports": ["80"], "methods": ["GET"]}}],
        }
    ]
    assert "shop/a, " in one["metadata"]["annotations"]["eastgate.dev/converted-from"]


def test_levels_that_only_may_meet_are_not_put_into_one_list() -> None:
    outcome = to_istio(policy("n", selector={}), policy("a", level="APPLICATION"))
    assert [one["metadata"]["name"] for one in outcome.written] == ["n"]
    assert [one["metadata"]["name"] for one in outcome.kept] == ["a"]
    assert outcome.losses == ["EG7103"]


def test_levels_are_not_joined_where_a_third_policy_allows_on_some_of_the_pods() -> None:
    outcome = to_istio(policy("n"), policy("a", level="APPLICATION"), policy("m", selector={}))
    assert [one["metadata"]["name"] for one in outcome.written] == ["n", "m"]
    assert [one["metadata"]["name"] for one in outcome.kept] == ["a"]


def test_levels_are_joined_beside_a_deny_on_other_pods() -> None:
    outcome = to_istio(policy("n"), policy("a", level="APPLICATION"), policy("d", "DENY", selector={}))
    assert [one["metadata"]["name"] for one in outcome.written] == ["a", "d", "d-allow-nothing"]
    assert outcome.losses == []


@pytest.mark.parametrize(("mode", "kept"), [("sidecar", 0), ("ambient", 1)])
def test_a_dry_run_is_one_in_sidecars_only(mode: str, kept: int) -> None:
    outcome = to_istio(policy("p", annotations={"eastgate.dev/mode": "audit"}), meshMode=mode)
    assert len(outcome.kept) == kept
    assert all(one["metadata"]["annotations"]["istio.io/dry-run"] == "true" for one in outcome.written)


@pytest.mark.parametrize(("reading", "written"), [("traffic", 1), ("workloads", 0)])
def test_a_service_at_l7_is_for_its_waypoint(reading: str, written: int) -> None:
    one = policy("p", level="APPLICATION")
    one["spec"]["targetRefs"] = [{"kind": "Service", "name": "web"}]
    outcome = to_istio(one, meshMode="ambient", serviceTarget=reading)
    assert [one["spec"]["targetRefs"][0]["name"] for one in outcome.written] == ["web"] * written
    assert set(outcome.losses) == {"EG7106"}


@pytest.mark.parametrize("action", ["ALLOW", "DENY"])
def test_what_ztunnel_does_not_see_is_not_left_to_it(action: str) -> None:
    http, labels = {"applicationAttributes": {"paths": ["/admin"]}}, {"istio.io/dataplane-mode": "ambient"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}
    outcome = to_istio(namespace, policy("p", action, level="APPLICATION", rules=[http]))
    assert outcome.written == []
    assert outcome.losses == ["EG7106"]


def istio_policy(name: str, action: str = "ALLOW", **spec: Any) -> Manifest:
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": spec.pop("namespace", "shop")},
        "spec": {"action": action, **spec},
    }


@pytest.mark.parametrize("namespace", ["shop", "istio-system"])
def test_an_allow_does_not_join_those_that_istio_has_already(namespace: str) -> None:
    outcome = to_istio(policy("p"), istio_policy("q", namespace=namespace, rules=[{}]))
    assert [one["metadata"]["name"] for one in outcome.written] == ["q"]
    assert [one["metadata"]["name"] for one in outcome.kept] == ["p"]
    assert outcome.losses == ["EG7507"]


def test_a_policy_of_istio_keeps_its_name() -> None:
    there = istio_policy("p", "DENY", selector={"matchLabels": {"app": "db"}}, rules=[{}])
    outcome = to_istio(policy("p"), there)
    assert [one["metadata"]["name"] for one in outcome.written] == ["p-2", "p"]
    assert outcome.losses == []


GATEWAY: Manifest = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "Gateway",
    "metadata": {"name": "edge", "namespace": "shop"},
    "spec": {"gatewayClassName": "istio", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
}
PLAINTEXT: Manifest = {
    "apiVersion": "security.istio.io/v1",
    "kind": "PeerAuthentication",
    "metadata": {"name": "off", "namespace": "istio-system"},
    "spec": {"mtls": {"mode": "DISABLE"}},
}


@pytest.mark.parametrize("beside", [GATEWAY, PLAINTEXT], ids=["gateway", "plaintext"])
@pytest.mark.parametrize("action", ["ALLOW", "DENY"])
def test_what_would_be_about_more_than_pods_is_not_converted(beside: Manifest, action: str) -> None:
    outcome = to_istio(beside, policy("p", action, selector={}))
    assert [one["metadata"]["name"] for one in outcome.kept] == ["p"]
    assert outcome.losses == ["EG7503"]
