"""Shadowed rules of merged policies, with the rules in force that shadow them."""

from __future__ import annotations

import pytest

from eastgate import Settings
from eastgate.authority.trace_json import effective_to_json
from eastgate.ir import EffectivePolicy, Shadowing
from eastgate.reports.cluster import Cluster
from tests.dialects.kuadrant.manifests import GATEWAY, ROUTE, merged, policy_on, rules
from tests.worlds.test_generated_clusters import authority_of

Shadowed = set[tuple[str, str, Shadowing, tuple[str, ...]]]


def _effective(gateway: dict[str, object], listener: dict[str, object], route: dict[str, object]) -> EffectivePolicy:
    policies = [
        policy_on("Gateway", "gateway", gateway),
        policy_on("Gateway", "listener", listener, section="http"),
        policy_on("HTTPRoute", "route", route),
    ]
    cluster = Cluster(authority_of([GATEWAY, ROUTE, *policies], Settings()))
    (rule,) = cluster.rules
    (effective,) = (chain.effective for layer in cluster.layers(rule) for chain in layer.chains)
    assert effective is not None
    return effective


ATOMIC, DEFAULT = Shadowing.ATOMIC_DEFAULTS, Shadowing.DEFAULT
OVERRIDES, OVERRIDE = Shadowing.ATOMIC_OVERRIDES, Shadowing.OVERRIDE


@pytest.mark.parametrize(
    ("gateway", "listener", "route", "in_force", "shadowed"),
    [
        pytest.param(
            rules("a"),
            rules("b"),
            rules("c"),
            {("c", "route")},
            {("a", "gateway", ATOMIC, ("route",)), ("b", "listener", ATOMIC, ("route",))},
            id="the most specific of atomic defaults",
        ),
        pytest.param(
            {"overrides": rules("a")},
            rules("b"),
            rules("c"),
            {("a", "gateway")},
            {("b", "listener", OVERRIDES, ("gateway",)), ("c", "route", OVERRIDES, ("gateway",))},
            id="atomic overrides shadow also what was shadowed",
        ),
        pytest.param(
            merged("defaults", "a", "b"),
            merged("defaults", "b"),
            rules("c"),
            {("a", "gateway"), ("b", "listener"), ("c", "route")},
            {("b", "gateway", DEFAULT, ("listener",))},
            id="merged defaults",
        ),
        pytest.param(
            merged("overrides", "a"),
            merged("overrides", "a", "b"),
            rules("a", "b", "c"),
            {("a", "gateway"), ("b", "listener"), ("c", "route")},
            {
                ("a", "listener", OVERRIDE, ("gateway",)),
                ("a", "route", OVERRIDE, ("gateway",)),
                ("b", "route", OVERRIDE, ("listener",)),
            },
            id="merged overrides",
        ),
        pytest.param(
            rules("a"),
            merged("overrides", "b"),
            rules("c"),
            {("b", "listener"), ("c", "route")},
            {("a", "gateway", ATOMIC, ("route", "listener"))},
            id="atomic defaults below two",
        ),
    ],
)
def test_every_rule_is_in_force_or_shadowed(
    gateway: dict[str, object],
    listener: dict[str, object],
    route: dict[str, object],
    in_force: set[tuple[str, str]],
    shadowed: Shadowed,
) -> None:
    effective = _effective(gateway, listener, route)
    assert {(_name(rule.key), str(rule.origin.policy).split("/")[-1]) for rule in effective.rules} == in_force
    assert {
        (_name(rule.key), str(rule.origin.policy).split("/")[-1], rule.why, tuple(by.name for by in rule.by))
        for rule in effective.shadowed
    } == shadowed


def _name(key: str) -> str:
    return key.removeprefix("authentication#")


def test_json_tells_why_and_by_whom() -> None:
    shown = effective_to_json(_effective(rules("a"), merged("defaults", "b"), rules("c")))
    assert [(rule["key"], rule["why"], rule["by"]) for rule in shown["shadowed"]] == [  # type: ignore[attr-defined]
        ("authentication#a", "atomic-defaults", ["AuthPolicy/n/route", "AuthPolicy/n/listener"])
    ]
