"""Policies on a target give its layer: the schemes that are asked, their order, and the refusals."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eastgate.authority.authority import Authority
from eastgate.cluster import World
from eastgate.dialects.base import Scene
from eastgate.dialects.kuadrant.proposal.assemble import in_force, layers
from eastgate.engine import reference
from eastgate.ir import ALWAYS, AskAll, Attachment, Deny, Known, Layer, Observe, Refusal, Request
from eastgate.ir.attributes import HOST, METHOD, PATH, SNI, Attribute
from eastgate.ir.rules import rules_of
from eastgate.settings import Settings
from tests.dialects.kuadrant.test_authpolicy import (
    GATEWAY_TARGET,
    ROUTE_TARGET,
    ask,
    authority,
    gateway,
    policy,
    policy_of,
    route,
    schemes,
)

TO_ROUTE, TO_GATEWAY = "route:shop/toys", "gateway:shop/external"


def layer(*texts: str) -> Layer:
    """Return the layer of some policies."""
    (only,) = layers([Attachment(policy_of(text), None) for text in texts], Scene(Settings(), World()))
    return only


def stage_lines(one: Layer) -> list[str]:
    """Return each stage as a line: its name and its rules."""
    return [
        f"{stage.name}: {', '.join(str(rule.origin) for rule in rules_of(stage))}" for stage in one.otherwise.stages
    ]


def scheme_for(one: Layer, host: str | None, method: str = "GET", path: str = "/", sni: str | None = None) -> list[int]:
    """Return the spans of the schemes that a request asks; [404] if it needs one and has none."""
    values: dict[Attribute, Known] = {HOST: host, METHOD: method, PATH: path, SNI: sni}
    asked: list[int] = []
    for stage in one.otherwise.stages:
        held = [rule for rule in rules_of(stage) if reference.holds(rule.when, Request(values))]
        if isinstance(stage, Deny) and held:
            return [404]
        if isinstance(stage, AskAll):
            asked += [rule.origin.index for rule in held]
    return asked


def test_what_has_no_scheme_is_refused_before_schemes_are_asked() -> None:
    one = layer(policy("p", ROUTE_TARGET, schemes("a.toys.com", "b.toys.com")))
    assert stage_lines(one) == [
        "no-scheme: AuthPolicy/shop/p without an auth scheme for this host",
        "auth: AuthPolicy/shop/p auth scheme 1, AuthPolicy/shop/p auth scheme 2",
    ]
    refuse, asks = one.otherwise.stages
    assert isinstance(refuse, Deny)
    assert refuse.refusal is Refusal.NOT_FOUND
    assert isinstance(asks, AskAll)
    assert [ask.authorizer for ask in asks.asks] == [
        "AuthPolicy/shop/p auth scheme 1",
        "AuthPolicy/shop/p auth scheme 2",
    ]


def test_a_scheme_for_every_host_leaves_nothing_to_refuse() -> None:
    one = layer(policy("p", ROUTE_TARGET, schemes("'*'", "b.toys.com")))
    assert stage_lines(one) == ["auth: AuthPolicy/shop/p auth scheme 1, AuthPolicy/shop/p auth scheme 2"]


def test_without_schemes_everything_selected_is_refused() -> None:
    one = layer(policy("p", ROUTE_TARGET, "rules: [{paths: [/admin]}]"))
    assert stage_lines(one) == ["no-scheme: AuthPolicy/shop/p without an auth scheme for this host"]
    assert scheme_for(one, "a.toys.com", path="/admin") == [404]
    assert scheme_for(one, "a.toys.com") == []


@pytest.mark.parametrize(("target", "name"), [(ROUTE_TARGET, "route/auth"), (GATEWAY_TARGET, "gateway/auth")])
def test_the_layer_is_named_after_the_target(target: str, name: str) -> None:
    assert layer(policy("p", target, schemes("'*'"))).name == name


RULES = """
rules:
- hosts: ["*.toys.com"]
  methods: [GET, POST]
  paths: [/admin, /api/*, "*.php"]
- hosts: [b.toys.com]
"""

# Host, method, path, and whether the rules select it: ALL fields of a rule, ANY of a list, ANY rule.
SELECTED = [
    ("a.toys.com", "GET", "/admin", True),
    ("a.toys.com", "POST", "/api/x", True),
    ("a.toys.com", "GET", "/x.php", True),
    ("a.toys.com", "GET", "/api", False),
    ("a.toys.com", "GET", "/admin/", False),
    ("a.toys.com", "DELETE", "/admin", False),
    ("toys.com", "GET", "/admin", False),
    ("eviltoys.com", "GET", "/admin", False),
    ("b.toys.com", "DELETE", "/anything", True),
]


@pytest.mark.parametrize(("host", "method", "path", "expected"), SELECTED)
def test_fields_are_anded_lists_and_rules_are_ored(host: str, method: str, path: str, expected: bool) -> None:
    one = layer(policy("p", ROUTE_TARGET, RULES + schemes("'*'")))
    assert bool(scheme_for(one, host, method, path)) is expected


@pytest.mark.parametrize("rules", ["", "rules: []", "rules: [{}]", "rules: [{methods: ['*'], paths: ['*']}]"])
def test_what_restricts_nothing_selects_everything(rules: str) -> None:
    (stage,) = layer(policy("p", ROUTE_TARGET, f"{rules}\n{schemes('*'.join(chr(39) * 2))}")).otherwise.stages
    assert [rule.when for rule in rules_of(stage)] == [ALWAYS]


def test_the_nearest_scheme_is_asked_by_the_header_alone() -> None:
    rules = "rules: [{hosts: ['*.toys.com']}]\n"
    one = layer(policy("p", ROUTE_TARGET, rules + schemes("'*.toys.com'", "a.toys.com, c.toys.com", "'*.b.toys.com'")))
    assert scheme_for(one, "a.toys.com") == [1]
    assert scheme_for(one, "c.toys.com") == [1]
    assert scheme_for(one, "x.toys.com") == [0]
    assert scheme_for(one, "x.b.toys.com") == [2]
    assert scheme_for(one, "b.toys.com") == [0]
    assert scheme_for(one, "other.com", sni="a.toys.com") == [404]
    assert scheme_for(one, "a.toys.com", sni="other.com") == [1]
    assert scheme_for(one, "other.com", sni="other.com") == []


def test_an_audit_is_observed_and_asks_nobody() -> None:
    one = layer(
        policy("a", ROUTE_TARGET, RULES + schemes("'*'"), audit=True),
        policy("b", ROUTE_TARGET, schemes("'*'")),
    )
    assert stage_lines(one) == [
        "audit: AuthPolicy/shop/a rule 0, AuthPolicy/shop/a rule 1",
        "auth: AuthPolicy/shop/b auth scheme 1",
    ]
    (observed,) = layer(policy("a", ROUTE_TARGET, schemes("'*'"), audit=True)).otherwise.stages
    assert isinstance(observed, Observe)
    assert observed.would == ("ask",)


OLD, NEW = "2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("policies", "winner"),
    [
        ([("a", NEW, False), ("b", OLD, False)], "b"),
        ([("a", OLD, False), ("b", NEW, False)], "a"),
        ([("b", "", False), ("a", "", False)], "a"),
        ([("b", OLD, False), ("a", OLD, False)], "a"),
        ([("a", "", False), ("b", NEW, False)], "b"),
        ([("a", OLD, True), ("b", NEW, False)], "b"),
        ([("a", OLD, True)], None),
        ([], None),
    ],
)
def test_the_oldest_is_in_force(policies: Sequence[tuple[str, str, bool]], winner: str | None) -> None:
    read = [policy_of(policy(name, ROUTE_TARGET, "rules: []", created=at, audit=audit)) for name, at, audit in policies]
    chosen = in_force(read)
    assert (chosen.ref.name if chosen else None) == winner


def test_only_the_one_in_force_asks_in_any_order() -> None:
    one = policy("one", ROUTE_TARGET, schemes("'*'"), created=NEW)
    other = policy("other", ROUTE_TARGET, schemes("'*'"), created=OLD)
    assert (
        stage_lines(layer(one, other))
        == stage_lines(layer(other, one))
        == ["auth: AuthPolicy/shop/other auth scheme 1"]
    )


# Both levels, in the order of a request

ON_ROUTE = policy("on-route", ROUTE_TARGET, "rules: [{paths: [/r, /both]}]\n" + schemes("'*.toys.com'", denies=True))
ON_GATEWAY = policy("on-gateway", GATEWAY_TARGET, "rules: [{paths: [/g, /both]}]\n" + schemes("'*'", denies=True))


def cluster(*policies: str) -> Authority:
    return authority(gateway(), route(), *policies)


@pytest.mark.parametrize("to", [TO_ROUTE, TO_GATEWAY])
@pytest.mark.parametrize(
    ("path", "by"),
    [
        ("/", None),
        ("/r", "AuthPolicy/shop/on-route"),
        ("/g", "AuthPolicy/shop/on-gateway"),
        ("/both", "AuthPolicy/shop/on-gateway"),
    ],
)
def test_a_policy_on_a_gateway_and_one_on_its_route_both_apply(to: str, path: str, by: str | None) -> None:
    decision = ask(cluster(ON_ROUTE, ON_GATEWAY), to, "a.toys.com", path)
    assert (decision.verdict, decision.policy) == ("allow" if by is None else "deny", by)


def test_both_that_let_it_in_let_it_in() -> None:
    both = cluster(policy("r", ROUTE_TARGET, schemes("'*.toys.com'")), policy("g", GATEWAY_TARGET, schemes("'*'")))
    decision = ask(both, TO_ROUTE, "a.toys.com")
    assert decision.allowed
    assert [one.name for one in decision.layers] == ["gateway/auth", "route/auth"]


def test_a_host_without_a_scheme_is_not_found() -> None:
    decision = ask(cluster(policy("r", ROUTE_TARGET, schemes("a.toys.com"))), TO_ROUTE, "b.toys.com")
    assert (decision.verdict, decision.status) == ("deny", 404)
    assert decision.reason == "AuthPolicy/shop/r without an auth scheme for this host denies it"


def test_an_unknown_host_may_be_one_without_a_scheme() -> None:
    decision = ask(cluster(policy("r", ROUTE_TARGET, schemes("a.toys.com"))), TO_ROUTE, None)
    assert (decision.verdict, decision.status) == ("deny", 404)
    assert decision.reason.endswith("; unknown: host")
    every = authority(gateway(), route("a.toys.com"), policy("g", GATEWAY_TARGET, schemes("'*'")))
    assert ask(every, TO_ROUTE, None).allowed


def test_an_encoded_slash_is_refused_where_rules_look_at_paths() -> None:
    looks = cluster(policy("r", ROUTE_TARGET, "rules: [{paths: [/admin]}]\n" + schemes("'*.toys.com'")))
    assert not ask(looks, TO_ROUTE, "a.toys.com", "/a%2fb").allowed
    assert ask(looks, TO_ROUTE, "a.toys.com", "/a").allowed
