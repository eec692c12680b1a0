"""Unknown values never allow: the answer is allow only if it is allow for every value."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from eastgate.dialects.kuadrant.authorino.model import (
    All,
    AnyOf,
    Authorization,
    CelExpression,
    CelPredicate,
    Condition,
    Identity,
    LiteralValue,
    Pattern,
    PatternOperator,
    PatternRules,
    Plain,
    PlainResponse,
    Property,
    Response,
    Scheme,
    Selected,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from eastgate.ir.attributes import UNKNOWN
from tests.dialects.kuadrant.authorino.schemes import (
    api_keys,
    both,
    everybody,
    holding,
    nothing_known,
    pattern,
    request,
    rule,
    scheme,
    secret,
    trail,
    verdict,
)

NO_HEADERS = request(headers=UNKNOWN)
SERVICES = holding(secret("alice", "k3y-of-alice"))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (pattern("request.headers.x eq 1"), "unknown"),
        (pattern("request.headers.x neq 1"), "unknown"),
        (pattern("context.request.http.headers.x excl 1"), "unknown"),
        (pattern("request.@this|headers.x neq 1"), "unknown"),
        (pattern("*.headers.x neq 1"), "unknown"),
        (pattern("@this.request.headers.x neq 1"), "unknown"),
        (pattern("req\\uest.headers.x neq 1"), "unknown"),
        (pattern("re?uest.headers.x neq 1"), "unknown"),
        (pattern("request neq 1"), "unknown"),
        (pattern("[request.headers.x,request.method] neq 1"), "unknown"),
        (pattern("request.referer eq "), "unknown"),
        (pattern("request.user_agent eq "), "unknown"),
        (pattern("request.method eq GET"), "accepted"),
        (pattern("request.headersx eq "), "accepted"),
        (both("request.headers.x eq 1", "request.method eq PUT"), "refused"),
        (AnyOf((pattern("request.headers.x eq 1"), pattern("request.method eq GET"))), "accepted"),
        (AnyOf((pattern("request.headers.x eq 1"), pattern("request.method eq PUT"))), "unknown"),
        (CelPredicate("!('x' in request.headers)"), "unknown"),
        (CelPredicate("!has(request.headers.x)"), "unknown"),
        (CelPredicate("request.exists(k, k == 'headers') || true"), "unknown"),
        (CelPredicate("request['headers'].size() == 0"), "unknown"),
        (CelPredicate("request.?headers.?x.orValue('') == ''"), "unknown"),
        (CelPredicate("request.method == 'GET'"), "accepted"),
        (AnyOf((CelPredicate("request.headers.x == '1'"), pattern("request.method eq GET"))), "unknown"),
        (All((CelPredicate("request.headers.x == '1'"), pattern("request.method eq PUT"))), "unknown"),
    ],
)
def test_what_looks_at_the_unknown_is_unknown(condition: Condition, expected: str) -> None:
    assert verdict(condition, NO_HEADERS) == expected


@pytest.mark.parametrize(
    ("selector", "named"),
    [
        ("request.host", "the host"),
        ("request.method", "the method"),
        ("request.path", "the path"),
        ("request.url_path", "the path"),
        ("request.query", "the path"),
        ("request.scheme", "the scheme"),
        ("request.headers.x", "the headers"),
        ("request.size", "the size"),
        ("request.body", "the body"),
        ("source.principal", "the source identity"),
        ("source.address", "the source address"),
        ("source.port", "the source port"),
        ("context.source.certificate", "the client certificate"),
        ("context.source.address.Address", "the source address"),
        ("destination.principal", "the destination"),
        ("metadata.filter", "the proxy's metadata"),
    ],
)
def test_the_reason_names_what_is_unknown(selector: str, named: str) -> None:
    found = evaluate(scheme(rule(f"{selector} neq x")), nothing_known(), Services())
    assert (found.allowed, found.status) == (False, 403)
    assert found.reason == f"It depends on {named}, which is not known."


def test_what_nobody_looks_at_may_be_unknown() -> None:
    assert evaluate(scheme(), nothing_known(), Services()).allowed
    assert evaluate(scheme(rule("auth.identity.anonymous eq true")), nothing_known(), Services()).allowed


@pytest.mark.parametrize("path", ["//evil/x", "http://evil/x", "/%zz", "/a b", "/%ff", "x"])
def test_a_path_that_is_read_in_several_ways_has_no_known_form(path: str) -> None:
    assert verdict("request.url_path neq /admin", request(path)) == "unknown"
    assert verdict(f"request.path eq {path}", request(path)) == "accepted"


# Steps that may or may not take place


MAYBE = pattern("request.headers.x eq 1")
MAYBE_ERROR = CelPredicate("request.headers.x == '1'")


def asked(guarded: Scheme, facts: RequestFacts = NO_HEADERS, services: Services = SERVICES) -> Judgement:
    return evaluate(guarded, facts, services)


NO_METHOD = request(method=UNKNOWN, host=UNKNOWN, headers=UNKNOWN)


@pytest.mark.parametrize(
    "predicate",
    [
        "request.method == 'GET'",
        "'GET' != request.method",
        "!(request.method in ['GET', 'HEAD'])",
        "request.method == 'GET' || request.host.endsWith('.example.com')",
        "request.host.startsWith('a') && request.host.contains('b')",
    ],
)
def test_a_comparison_of_a_text_that_every_request_has_does_not_err(predicate: str) -> None:
    for when in (CelPredicate(predicate), All((CelPredicate(predicate, at_gateway=True),))):
        assert asked(scheme(when=when), NO_METHOD).allowed
        assert not asked(scheme(rule("request.path eq /other"), when=when), NO_METHOD).allowed


@pytest.mark.parametrize(
    "predicate",
    [
        "request.method == 'GET' && request.headers.x == '1'",
        "request.headers['x'] != '1'",
        "int(request.method) == 1",
        "request.method[0] == 'G'",
        "request.method + request.headers.x == 'GET'",
        "request.method.matches(request.host)",
        "request.method.size() > 3",
        "request.method.charAt(5) == ''",
        "request.method < request.host",
        "request.method ? true : false",
    ],
)
def test_any_other_expression_on_the_unknown_may_err(predicate: str) -> None:
    assert not asked(scheme(when=CelPredicate(predicate)), NO_METHOD).allowed


def test_a_scheme_that_may_not_concern_a_request_must_allow_it() -> None:
    assert asked(scheme(rule("request.method eq GET"), when=MAYBE)).allowed
    assert not asked(scheme(rule("request.method eq PUT"), when=MAYBE)).allowed
    assert not asked(scheme(rule("request.method eq GET"), when=MAYBE_ERROR)).allowed
    compat = replace(SERVICES, authorino_compat=True)
    assert asked(scheme(rule("request.method eq GET"), when=MAYBE_ERROR), services=compat).allowed


def test_a_rule_that_may_be_skipped_must_agree() -> None:
    assert asked(scheme(rule("request.method eq GET", when=MAYBE))).allowed
    assert not asked(scheme(rule("request.method eq PUT", when=MAYBE))).allowed
    later = rule("auth.authorization.rule neq true", "later", priority=1)
    assert trail(asked(scheme(rule("request.method eq GET", when=MAYBE), later)))[-1] == ("later", "unknown")


def test_a_caller_that_somebody_recognizes_for_sure_is_recognized_but_not_who_it_is() -> None:
    identities = [api_keys(), everybody(priority=1)]
    found = asked(scheme(rule("request.method eq GET"), identities=identities))
    assert (found.allowed, trail(found)[:2]) == (True, [("keys", "unknown"), ("everybody", "accepted")])
    assert "identity" not in found.document["auth"]  # type: ignore[operator]
    looking = asked(scheme(rule("auth.identity.anonymous eq true"), identities=identities))
    assert trail(looking)[-1] == ("rule", "unknown")
    assert "the identity of the caller" in looking.reason


def test_a_caller_that_perhaps_nobody_recognizes_is_not() -> None:
    assert asked(scheme(identities=[api_keys()])).status == 401
    assert asked(scheme(identities=[everybody(when=MAYBE)])).status == 401
    assert asked(scheme(identities=[everybody(when=MAYBE), everybody("other")])).allowed


def test_unknown_properties_make_an_identity_unknown() -> None:
    for value in (Selected("request.headers.x"), Selected("a{request.headers.x}"), CelExpression("request.headers.x")):
        assert not asked(scheme(identities=[everybody(properties=(Property("x", value),))])).allowed
    assert not asked(scheme(identities=[Identity("plain", Plain("request.headers.x"))])).allowed


def test_unknown_responses_are_left_out() -> None:
    stage_lines = (
        Response("a", PlainResponse(Selected("request.headers.x")), "x-a"),
        Response("b", PlainResponse(LiteralValue("b")), "x-b", when=MAYBE),
        Response("c", PlainResponse(LiteralValue("c")), "x-c"),
    )
    found = asked(scheme(responses=stage_lines))
    assert (found.allowed, found.response_headers) == (True, {"x-c": "c"})


# Every completion: a request that is allowed with unknown values is allowed for each of their values


VALUES = ("", "1", "2")
SELECTORS = ("request.headers.a", "request.headers.b", "request.method", "auth.identity.role", "auth.authorization.r0")
leaves: st.SearchStrategy[Condition] = st.builds(
    Pattern,
    st.sampled_from(SELECTORS),
    st.sampled_from([PatternOperator.EQ, PatternOperator.NEQ, PatternOperator.INCL, PatternOperator.EXCL]),
    st.sampled_from((*VALUES, "true", "GET")),
) | st.sampled_from(
    [
        CelPredicate("request.headers.a == '1'"),
        CelPredicate("!has(request.headers.b)"),
        Pattern("a", PatternOperator.MATCHES, "("),
    ]
)
conditions: st.SearchStrategy[Condition] = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: All(tuple(parts)))
        | st.lists(inner, max_size=3).map(lambda parts: AnyOf(tuple(parts)))
    ),
    max_leaves=5,
)
maybe: st.SearchStrategy[Condition | None] = st.none() | conditions
identities = st.builds(
    lambda at, when, role: everybody(f"i{at}", priority=at, when=when, properties=(Property("role", role),)),
    st.integers(0, 2),
    maybe,
    st.sampled_from([LiteralValue("1"), LiteralValue("2"), Selected("request.headers.a")]),
)
rules = st.lists(st.tuples(conditions, maybe), max_size=3).map(
    lambda found: tuple(
        Authorization(f"r{at}", PatternRules(condition), at, when) for at, (condition, when) in enumerate(found)
    )
)
schemes = st.builds(
    lambda found, known, when: Scheme("shop", ("*",), tuple(known), authorizations=found, when=when),
    rules,
    st.lists(identities, max_size=2),
    maybe,
)


@given(schemes, st.booleans())
def test_every_completion_agrees_with_an_answer_that_allows(guarded: Scheme, compat: bool) -> None:
    services = Services(authorino_compat=compat)
    if not evaluate(guarded, request(headers=UNKNOWN, method=UNKNOWN), services).allowed:
        return
    for a, b, method in product((None, *VALUES), (None, *VALUES), ("GET", "1")):
        headers = {name: value for name, value in (("a", a), ("b", b), ("x", "y")) if value is not None}
        assert evaluate(guarded, request(headers=headers, method=method), services).allowed
