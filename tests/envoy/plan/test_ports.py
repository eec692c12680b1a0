"""The plan of a port with handmade layers: connections, requests, bytes, audit, and limits."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from eastgate import Settings
from eastgate.dialects.linkerd.provenance import LOCALHOST
from eastgate.envoy.plan import PortPlan, ProxyVerdict, plan_port, ports
from eastgate.envoy.plan.decisions import NO_AUDIT
from eastgate.envoy.plan.fields import RequestField, looked_at
from eastgate.ir import (
    ALWAYS,
    REFUSED_SPELLING,
    AllowAny,
    And,
    Chain,
    Computed,
    Deny,
    InNetwork,
    Is,
    Layer,
    Observe,
    OneOf,
    Origin,
    Placement,
    PolicyRef,
    Predicate,
    Prefix,
    Present,
    Refusal,
    Rule,
    SelectorCase,
    Stage,
)
from eastgate.ir.attributes import ADDRESS, IDENTITY, METHOD, PATH, PORT, header
from eastgate.ir.symbolic.trees import DecisionNode

SETTINGS = Settings.from_mapping({"trustDomain": "td"})
IS_HTTP, IS_GET = Is(METHOD, Present()), Is(METHOD, OneOf(frozenset({"GET"})))
HERE = Is(ADDRESS, InNetwork((ip_network("10.0.0.0/8"),)))
TEAM, OTHER_TEAM = header("x-team"), header("x-other-team")
SENSITIVE = Computed("a pattern", frozenset({PATH}), lambda _: True, pattern=(PATH, "/a@.*"))
UNTESTABLE = Computed("it is nice", frozenset({PATH}), lambda _: True)
X = "spiffe://td/ns/a/sa/x"


def _rule(when: Predicate, name: str = "p") -> Rule:
    return Rule(when, Origin(PolicyRef("Kind", "n", name), 0))


def _allow(name: str = "p") -> ProxyVerdict:
    return ProxyVerdict(True, 200, f"Kind/n/{name}#0")


def _chain(*stages: Stage) -> Chain:
    return Chain(stages)


def _permit(when: Predicate = ALWAYS, name: str = "p", refusal: Refusal = Refusal.FORBIDDEN) -> AllowAny:
    return AllowAny("allow", (_rule(when, name),), refusal)


def _audit(when: Predicate, would: str = "DENY", name: str = "audited") -> Observe:
    return Observe("audit", (_rule(when, name),), (would,))


def _layer(otherwise: Chain, *cases: SelectorCase) -> Layer:
    return Layer(Placement(None, "workload"), otherwise, cases)


def _plan(*layers: Layer) -> PortPlan:
    return plan_port(layers, 80, SETTINGS)


CLOSES = _permit(refusal=Refusal.CLOSED)
HTTP_ONLY = _layer(_chain(Deny("deny", (_rule(ALWAYS, "raw"),))), SelectorCase(IS_HTTP, _chain(_permit())))


def test_bytes_that_may_be_http_or_not_must_be_allowed_as_both() -> None:
    plan = _plan(HTTP_ONLY)
    assert plan.raw is not None
    assert plan.requests is not None
    assert plan.requests.decision.nobody == _allow()
    assert plan.raw.nobody == ProxyVerdict(False, 0, "Kind/n/raw#0")


def test_a_rule_on_anything_that_is_http_lets_no_bytes_in() -> None:
    plan = _plan(_layer(_chain(_permit(IS_HTTP))))
    assert plan.raw is not None
    assert plan.raw.nobody == ProxyVerdict(False, 0, "none-of-1")


@pytest.mark.parametrize(("port", "allowed"), [(80, True), (81, False)])
def test_a_rule_on_ports_is_decided_before(port: int, allowed: bool) -> None:
    plan = _plan(_layer(_chain(_permit(Is(PORT, OneOf(frozenset({port}))), refusal=Refusal.CLOSED))))
    assert plan.connect.nobody == (_allow() if allowed else ProxyVerdict(False, 0, "none-of-1"))


def test_a_default_is_no_policy() -> None:
    plan = _plan(_layer(_chain(AllowAny("allow", (Rule(ALWAYS, Origin(None, 0, derived=LOCALHOST)),)))))
    assert plan.policies == frozenset()


def test_a_header_that_must_be_there_is_asked_for() -> None:
    plan = _plan(_layer(_chain(_permit(Is(TEAM, Present())))))
    assert plan.requests is not None
    assert plan.requests.decision.nobody == DecisionNode(
        ((Is(TEAM, Present()), _allow()),), ProxyVerdict(False, 403, "none-of-1")
    )


def _http_only(when: Predicate) -> Layer:
    return _layer(_chain(_permit()), SelectorCase(IS_HTTP, _chain(_permit(when))))


def test_a_path_that_is_refused_is_refused_where_some_layer_looks_at_paths() -> None:
    on_path = Is(PATH, Prefix("/a"))
    for looks_at_path in (_layer(_chain(_permit(on_path))), _http_only(on_path)):
        plan = _plan(HTTP_ONLY, looks_at_path)
        assert plan.requests is not None
        assert plan.requests.refusal is not None
        assert plan.requests.refusal.nobody == ProxyVerdict(False, 400, "encoded-slash")
        assert plan.requests.respelled is None
    plan = _plan(HTTP_ONLY)
    assert plan.requests is not None
    assert plan.requests.refusal is None


def test_a_path_in_another_spelling_is_refused_where_a_pattern_may_read_it_otherwise() -> None:
    sensitive = And((SENSITIVE, IS_GET))
    for layer in (_layer(_chain(_permit(sensitive))), _http_only(sensitive)):
        plan = _plan(HTTP_ONLY, layer)
        assert plan.requests is not None
        assert plan.requests.decision.nobody == DecisionNode(
            ((sensitive, _allow()),), ProxyVerdict(False, 403, "none-of-1")
        )
        assert plan.requests.respelled is not None
        assert plan.requests.respelled.nobody == ProxyVerdict(False, 400, REFUSED_SPELLING)


def test_of_policies_in_audit_mode_nothing_is_refused() -> None:
    plan = _plan(_layer(_chain(_audit(SENSITIVE), _permit(Is(PATH, Prefix("/a"))))))
    assert plan.requests is not None
    assert plan.requests.respelled is None


# Audit


@pytest.mark.parametrize(
    ("would", "allowed", "status"), [("DENY", False, 403), ("deny", False, 403), ("ALLOW", True, 200)]
)
def test_what_a_policy_in_audit_mode_would_do_is_planned_once(would: str, allowed: bool, status: int) -> None:
    plan = _plan(_layer(_chain(_audit(ALWAYS, would), CLOSES)), _layer(_chain(_permit())))
    assert plan.audit is not None
    assert plan.audit.nobody == ProxyVerdict(allowed, status, "Kind/n/audited#0")
    assert plan.requests is not None
    assert plan.requests.audit is None


def test_policies_in_audit_mode_have_callers_and_names_too() -> None:
    plan = _plan(_layer(_chain(_audit(Is(IDENTITY, OneOf(frozenset({X})))), CLOSES)))
    assert plan.audit is not None
    assert plan.audit.known == {X: ProxyVerdict(False, 403, "Kind/n/audited#0")}
    assert plan.audit.nobody == NO_AUDIT
    assert plan.policies == {"Kind/n/audited", "Kind/n/p"}


def test_where_some_chains_are_audited_the_others_are_not() -> None:
    plan = _plan(_layer(_chain(_permit()), SelectorCase(IS_GET, _chain(_audit(ALWAYS), _permit()))))
    assert plan.requests is not None
    assert plan.requests.audit is not None
    assert plan.requests.audit.nobody == DecisionNode(
        ((IS_GET, ProxyVerdict(False, 403, "Kind/n/audited#0")),), NO_AUDIT
    )


def test_where_http_is_read_a_chain_for_http_is_audited_as_such() -> None:
    plan = _plan(_layer(_chain(_permit()), SelectorCase(IS_HTTP, _chain(_audit(IS_GET), _permit()))))
    assert plan.requests is not None
    assert plan.requests.audit is not None
    assert plan.requests.audit.nobody == DecisionNode(
        ((IS_GET, ProxyVerdict(False, 403, "Kind/n/audited#0")),), NO_AUDIT
    )


def test_a_policy_in_audit_mode_that_cannot_be_tested_closes_nothing() -> None:
    plan = _plan(_layer(_chain(_audit(And((IS_GET, UNTESTABLE))), _permit())))
    assert plan.refused is None
    assert plan.requests is not None
    assert plan.requests.audit is not None
    assert plan.requests.audit.nobody == NO_AUDIT


def test_a_refusal_counts_the_policies_that_decide() -> None:
    plan = _plan(_layer(_chain(_audit(ALWAYS), _permit(HERE), _permit(HERE, "q"))))
    assert plan.requests is not None
    tree = plan.requests.decision.nobody
    assert isinstance(tree, DecisionNode)
    assert tree.otherwise == ProxyVerdict(False, 403, "none-of-2")


# Fields and bounds


def test_fields_are_those_of_atoms_and_deciding_ones_are_marked() -> None:
    atoms: list[Is | Computed] = [
        Is(PATH, Present()),
        Computed("a pattern", frozenset({TEAM, PATH}), lambda _: True),
        Is(TEAM, Present()),
        Is(OTHER_TEAM, Present()),
    ]
    assert looked_at(atoms, [OTHER_TEAM, PATH]) == (
        RequestField(OTHER_TEAM, decides=True),
        RequestField(TEAM, patterned=True),
    )


@pytest.mark.parametrize(("most", "code"), [(1, None), (0, "EG8004")])
def test_a_port_with_too_many_tests_is_closed(monkeypatch: pytest.MonkeyPatch, most: int, code: str | None) -> None:
    monkeypatch.setattr(ports, "_MAX_TESTS", most)
    plan = _plan(_layer(_chain(CLOSES)))
    assert (plan.refused and plan.refused.code.id) == code
    assert plan.policies == {"Kind/n/p"}
    assert plan.connect.nobody == (_allow() if code is None else ProxyVerdict(False, 0, "cannot-be-enforced"))
