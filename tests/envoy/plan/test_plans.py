"""The plan of a port: levels, tiers, inexpressible policies, and names that stay the same after a change."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from envoy.config.listener.v3 import listener_pb2

from eastgate import Settings
from eastgate.dialects.linkerd.provenance import LOCALHOST
from eastgate.envoy.plan import Inexpressible, PortPlan, ProxyVerdict, plan_port
from eastgate.envoy.plan.combining import unread
from eastgate.envoy.plan.decisions import name_of
from eastgate.envoy.server.resources import EXTENSION, LISTENER
from eastgate.ir import (
    AllowAny,
    Ask,
    AskAll,
    Chain,
    Computed,
    Is,
    Layer,
    Not,
    Observe,
    OneOf,
    Origin,
    Placement,
    PolicyRef,
    Prefix,
    Present,
    Refusal,
    Rule,
    Site,
    Stage,
)
from eastgate.ir.attributes import ADDRESS, METHOD, PATH, SERVICE, Attribute, claim, header
from eastgate.ir.symbolic.trees import DecisionNode, choice
from tests.differential.bench import authority_of
from tests.differential.world import WORLD
from tests.envoy.plan.emitting import Manifest, emitted
from tests.envoy.plan.interpreter import Interpreter, Sent

SETTINGS = Settings.from_mapping({"trustDomain": "td"})
RULE = Origin(PolicyRef("Kind", "n", "p", "g.io"), 3)
YES, NO = ProxyVerdict(True, 200, "yes"), ProxyVerdict(False, 403, "no")
IS_GET = Is(METHOD, OneOf(frozenset({"GET"})))
HERE = Is(ADDRESS, Prefix("127."))


def _plan(*stages: Stage) -> PortPlan:
    return plan_port([Layer(Placement(Site.WORKLOAD, "application"), Chain(stages))], 80, SETTINGS)


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        (RULE, "Kind.g.io/n/p#3"),
        (Origin(PolicyRef("Kind", None, "p"), 0), "Kind/p#0"),
        (Origin(None, 0, derived=LOCALHOST), "default/localhost-which-Linkerd-s-proxy-always-lets-in"),
        (None, "none-of-2"),
    ],
)
def test_a_verdict_is_named_after_the_rule_in_one_word(origin: Origin | None, name: str) -> None:
    assert name_of(origin, 2) == name


@pytest.mark.parametrize(
    ("node", "allowed"),
    [
        (choice([(IS_GET, YES)], NO), False),
        (choice([(IS_GET, NO)], YES), False),
        (choice([(IS_GET, YES)], YES), True),
        (choice([(Not(Is(METHOD, Present())), YES)], NO), False),
    ],
)
def test_bytes_that_are_not_read_come_in_only_where_all_of_http_would(
    node: DecisionNode[ProxyVerdict], allowed: bool
) -> None:
    found = unread(node)
    assert isinstance(found, ProxyVerdict)
    assert found.allowed is allowed
    assert found.status == (200 if allowed else 0)


def test_what_needs_no_http_is_still_asked_of_bytes() -> None:
    found = unread(choice([(HERE, YES), (IS_GET, YES)], NO))
    assert found == DecisionNode(((HERE, YES),), ProxyVerdict(False, 0, "no"))


_UNSEEN = Rule(Is(SERVICE, OneOf(frozenset({"a/s"}))), RULE)
_UNTESTABLE = Rule(Computed("it is nice", frozenset({PATH}), lambda _: True), RULE)
_ENVOYS = Rule(Is(header("X-Forwarded-Proto"), OneOf(frozenset({"https"}))), RULE)
_CLAIM = Rule(Is(claim("sub"), Present()), RULE)


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        (AskAll("ask", (Ask(Rule(IS_GET, RULE), "somebody"),)), "EG8001"),
        (AllowAny("allow", (_UNSEEN,)), "EG8002"),
        (AllowAny("allow", (_CLAIM,)), "EG8002"),
        (AllowAny("allow", (_UNTESTABLE,)), "EG8003"),
        (AllowAny("allow", (_ENVOYS,)), "EG8003"),
    ],
)
def test_a_port_is_closed_where_envoy_could_not_decide_the_same(stage: Stage, code: str) -> None:
    plan = _plan(stage)
    assert isinstance(plan.refused, Inexpressible)
    assert plan.refused.code.id == code
    assert {node.allowed for _, node in plan.connect.items() if isinstance(node, ProxyVerdict)} == {False}
    assert not plan.reads_http


def test_a_policy_on_the_traffic_of_a_service_closes_its_pods() -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "meshMode": "ambient", "serviceTarget": "traffic"})
    policy = _policy("q", [{}], target={"group": "", "kind": "Service", "name": "s0"})
    authority = authority_of([*WORLD, policy], chosen)
    proxy_outcome = Interpreter(emitted(authority, "a/p0", 80), 80).say(Sent("spiffe://td/ns/a/sa/x", "127.0.0.1"))
    assert (proxy_outcome.status, proxy_outcome.who) == (0, "cannot-be-enforced")


@pytest.mark.parametrize(
    ("refusal", "when", "reads_http"),
    [
        (Refusal.CLOSED, HERE, False),
        (Refusal.CLOSED, IS_GET, True),
        (Refusal.FORBIDDEN, HERE, True),
    ],
)
def test_a_port_is_read_as_http_where_a_layer_asks_for_it_or_answers_in_it(
    refusal: Refusal, when: Is, reads_http: bool
) -> None:
    assert _plan(AllowAny("allow", (Rule(when, RULE),), refusal)).reads_http is reads_http


# Stable names


def _policy(name: str, rules: list[Any], target: Manifest | None = None, **spec: Any) -> Manifest:
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {
            "targetRefs": [target or {"kind": "Pod", "selector": {"matchLabels": {"app": "web"}}}],
            "action": "ALLOW",
            "rules": rules,
            **spec,
        },
    }


def _tier(name: str, action: str, priority: int) -> Manifest:
    return {
        "apiVersion": "eastgate.dev/v1alpha1",
        "kind": "ClusterAuthorizationPolicy",
        "metadata": {"name": name},
        "spec": {"tier": "Admin", "priority": priority, "action": action, "rules": [{}]},
    }


def _from(*accounts: str, **more: Any) -> Manifest:
    return {"authorizationSource": {"serviceAccounts": list(accounts)}, **more}


def _versions(policies: list[Manifest]) -> dict[tuple[str, str], str]:
    return {one.key: one.version for one in emitted(authority_of([*WORLD, *policies], SETTINGS), "a/p0", 80)}


SOME = [
    _policy("one", [_from("x", "b/*")]),
    _policy("two", [_from("x", applicationAttributes={"paths": ["/a"]})], enforcementLevel="APPLICATION"),
    _policy("three", [_from("b/y")], action="DENY"),
]


def test_the_same_policies_are_the_same_bytes_in_whatever_order() -> None:
    shuffled = copy.deepcopy(SOME)
    Random(1).shuffle(shuffled)  # noqa: S311 - an order
    assert _versions(SOME) == _versions(shuffled)


def test_a_policy_on_others_changes_nothing() -> None:
    elsewhere = _policy("else", [_from("x")], target={"kind": "Pod", "selector": {"matchLabels": {"app": "db"}}})
    assert _versions(SOME) == _versions([*SOME, elsewhere])


def test_a_changed_path_changes_one_filter() -> None:
    changed = copy.deepcopy(SOME)
    changed[1]["spec"]["rules"][0]["applicationAttributes"]["paths"] = ["/b"]
    before, after = _versions(SOME), _versions(changed)
    assert {key for key in before if before[key] != after[key]} == {(EXTENSION, "80/requests")}


def _chains(policies: list[Manifest]) -> dict[str, bytes]:
    resources = emitted(authority_of([*WORLD, *policies], SETTINGS), "a/p0", 80)
    [body] = [one.body for one in resources if one.key == (LISTENER, "connections/80")]
    chains = listener_pb2.Listener.FromString(body).filter_chains
    return {chain.name: chain.SerializeToString(deterministic=True) for chain in chains}


def test_callers_that_stay_allowed_keep_the_same_filter_chain() -> None:
    before = _chains([_policy("one", [_from("x"), _from("y")])])
    after = _chains([_policy("another", [_from("b/x")]), _policy("one", [_from("b/*"), _from("x")])])
    stays, goes = "app:spiffe://td/ns/a/sa/x", "app:spiffe://td/ns/a/sa/y"
    assert before[stays] == after[stays]
    assert goes in before
    assert goes not in after


@pytest.mark.parametrize(
    ("tiers", "status", "who"),
    [
        ([], 0, "none-of-1"),
        ([_tier("t", "ALLOW", 0)], 200, "ClusterAuthorizationPolicy.eastgate.dev/t#0"),
        ([_tier("p", "PASS", 0), _tier("t", "ALLOW", 1)], 0, "none-of-3"),
        ([_tier("d", "DENY", 0), _tier("p", "PASS", 0)], 0, "ClusterAuthorizationPolicy.eastgate.dev/d#0"),
    ],
)
def test_tiers_pass_to_the_policies_below_them(tiers: list[Manifest], status: int, who: str) -> None:
    authority = authority_of([*WORLD, _policy("one", [_from("y")]), *tiers], SETTINGS)
    proxy_outcome = Interpreter(emitted(authority, "a/p0", 80), 80).say(
        Sent("spiffe://td/ns/a/sa/x", "127.0.0.1", "GET")
    )
    assert (proxy_outcome.status, proxy_outcome.who) == (status, who)


@pytest.mark.parametrize(
    ("target", "status"),
    [("/a", 200), ("/a%2fb", 400), ("/%5C", 400), ("//", 403), ("/a?x=%2f", 200), ("/a/../a", 200), ("/b", 403)],
)
def test_an_encoded_slash_is_refused_where_a_policy_looks_at_paths(target: str, status: int) -> None:
    policy = _policy("q", [{"applicationAttributes": {"paths": ["/a"]}}], enforcementLevel="APPLICATION")
    authority = authority_of([*WORLD, policy], SETTINGS)
    sent = Sent("spiffe://td/ns/a/sa/x", "127.0.0.1", "GET", target)
    assert Interpreter(emitted(authority, "a/p0", 80), 80).say(sent).status == status


@pytest.mark.parametrize("attribute", [PATH, header("x-team")], ids=str)
def test_what_may_be_absent_is_asked_for_in_audit_too(attribute: Attribute) -> None:
    observed = Observe("audit", (Rule(Is(attribute, Present()), RULE),), ("DENY",))
    plan = _plan(observed, AllowAny("allow", (Rule(IS_GET, RULE),)))
    assert plan.requests is not None
    assert plan.requests.audit is not None
    assert {isinstance(tree, DecisionNode) for _, tree in plan.requests.audit.items()} == {True}
