"""The steps of a scheme: their order, their conditions, and their results."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import Review, Services, Unavailable
from eastgate.dialects.kuadrant.authorino.model import (
    Authorization,
    CelExpression,
    CelPredicate,
    Credentials,
    Denial,
    Identity,
    Json,
    LiteralValue,
    Plain,
    PlainResponse,
    Property,
    Response,
    Selected,
    SubjectAccess,
    TokenReview,
    Value,
    Where,
)
from tests.dialects.kuadrant.authorino.schemes import (
    api_keys,
    everybody,
    holding,
    pattern,
    request,
    rule,
    scheme,
    secret,
    trail,
)

SERVICES = holding(secret("alice", "k3y-of-alice"))
ALICE = request(headers={"authorization": "APIKEY k3y-of-alice"})
ERRS = pattern("request.path matches (")
FAILS = pattern("request.method eq PUT")
HOLDS = pattern("request.method eq GET")


def test_a_scheme_without_identities_accepts_everybody() -> None:
    found = evaluate(scheme(rule("auth.identity.anonymous eq true")), request(), Services())
    assert (found.allowed, trail(found)) == (True, [("anonymous", "accepted"), ("rule", "accepted")])


def test_identities_are_asked_by_priority_and_the_first_to_recognize_wins() -> None:
    guarded = scheme(identities=[everybody("c", priority=2), api_keys("b", priority=1), api_keys("a", priority=-1)])
    assert trail(evaluate(guarded, ALICE, SERVICES)) == [("a", "accepted")]
    assert trail(evaluate(guarded, request(), SERVICES)) == [("a", "refused"), ("b", "refused"), ("c", "accepted")]


def test_authorizations_are_asked_by_priority_and_the_first_to_refuse_decides() -> None:
    guarded = scheme(rule(HOLDS, "z", priority=3), rule(FAILS, "y", priority=1), rule(HOLDS, "x"))
    found = evaluate(guarded, request(), Services())
    assert trail(found)[1:] == [("x", "accepted"), ("y", "refused")]
    assert (found.status, found.message, found.headers) == (
        403,
        "Unauthorized",
        (("X-Ext-Auth-Reason", "Unauthorized"),),
    )


def test_later_rules_see_what_earlier_ones_found() -> None:
    guarded = scheme(rule("auth.authorization.first eq true", "second", priority=1), rule(HOLDS, "first"))
    assert evaluate(guarded, request(), Services()).allowed


def test_what_patterns_saw_is_told() -> None:
    found = evaluate(scheme(rule("request.method eq PUT")), request(), Services())
    [seen] = found.steps[-1].seen
    assert (seen.expression, seen.saw) == ("request.method eq PUT", "GET")
    assert found.reason == "request.method eq 'PUT' does not hold: it found 'GET'."


# When


@pytest.mark.parametrize(
    ("when", "compat", "allowed", "steps"),
    [
        (HOLDS, False, False, ["accepted", "accepted", "refused"]),
        (FAILS, False, True, ["skipped"]),
        (ERRS, False, False, ["error"]),
        (ERRS, True, True, ["skipped"]),
        (CelPredicate("request.headers.nope == ''"), False, False, ["error"]),
        (CelPredicate("request.headers.nope == ''"), True, True, ["skipped"]),
    ],
)
def test_a_scheme_that_does_not_concern_a_request_lets_it_pass(
    when: object, compat: bool, allowed: bool, steps: list[str]
) -> None:
    found = evaluate(scheme(rule(FAILS), when=when), request(), Services(authorino_compat=compat))
    assert (found.allowed, [str(step.verdict) for step in found.steps]) == (allowed, steps)


@pytest.mark.parametrize(
    ("when", "compat", "allowed"),
    [(HOLDS, False, False), (FAILS, False, True), (ERRS, False, False), (ERRS, True, True)],
)
def test_the_condition_of_a_rule_skips_it_or_denies_when_it_errs(when: object, compat: bool, allowed: bool) -> None:
    found = evaluate(scheme(rule(FAILS, when=when)), request(), Services(authorino_compat=compat))
    assert found.allowed is allowed


@pytest.mark.parametrize(
    ("when", "compat", "status"), [(HOLDS, False, 200), (FAILS, False, 401), (ERRS, False, 401), (ERRS, True, 401)]
)
def test_the_condition_of_an_identity(when: object, compat: bool, status: int) -> None:
    found = evaluate(scheme(identities=[everybody(when=when)]), request(), Services(authorino_compat=compat))
    assert found.status == status


def test_an_error_in_the_condition_of_an_identity_does_not_fall_through_to_the_next() -> None:
    guarded = scheme(identities=[api_keys(when=ERRS), everybody()])
    assert not evaluate(guarded, request(), SERVICES).allowed
    holding_compat = holding(secret("alice", "k3y-of-alice"), authorino_compat=True)
    assert evaluate(guarded, request(), holding_compat).allowed


def test_a_pattern_that_errs_denies_with_and_without_compatibility() -> None:
    for compat in (False, True):
        assert not evaluate(scheme(rule(ERRS)), request(), Services(authorino_compat=compat)).allowed


# Denials


def test_a_caller_that_nobody_knows_gets_a_challenge_for_each_identity() -> None:
    custom = api_keys('the "second"', Credentials(Where.CUSTOM_HEADER, "X-Key"))
    found = evaluate(scheme(identities=[api_keys("first"), custom]), request(), SERVICES)
    assert found.status == 401
    assert found.headers[:2] == (
        ("WWW-Authenticate", 'APIKEY realm="first"'),
        ("WWW-Authenticate", 'X-Key realm="the \\"second\\""'),
    )
    name, reason = found.headers[2]
    assert (name, reason) == ("X-Ext-Auth-Reason", found.message)
    assert reason.startswith('{"first":"There is no credential')


def test_a_single_identity_says_its_reason_plainly() -> None:
    found = evaluate(scheme(identities=[api_keys()]), request(), SERVICES)
    assert found.message == "There is no credential in the Authorization header after 'APIKEY'."


def test_a_denial_can_be_made_over() -> None:
    login = Denial(
        302,
        LiteralValue("Please log in"),
        (
            Property("Location", Selected("https://login.example/?back={request.path}")),
            Property("X-Odd", LiteralValue("a\nb")),
        ),
        CelExpression("'sorry, ' + request.method"),
    )
    guarded = scheme(rule(FAILS), identities=[api_keys()], unauthenticated=login, unauthorized=Denial(404))
    found = evaluate(guarded, request(), SERVICES)
    assert (found.status, found.message, found.body) == (302, "Please log in", "sorry, GET")
    assert found.headers == (
        ("Location", "https://login.example/?back=/orders?x=1"),
        ("X-Odd", "a\\nb"),
        ("X-Ext-Auth-Reason", "Please log in"),
    )
    assert evaluate(guarded, ALICE, SERVICES).status == 404


# Responses


def test_the_service_behind_is_told_only_if_allowed() -> None:
    stage_lines = (
        Response("user", PlainResponse(Selected("auth.identity.metadata.name")), "x-user"),
        Response("json", Json((Property("b", LiteralValue(1)), Property("a", Selected("request.method")))), "x-json"),
        Response("meta", Json((Property("n", Selected("auth.response.user")),)), "ext", in_header=False, priority=1),
        Response("skipped", PlainResponse(LiteralValue("x")), "x-skipped", when=FAILS),
        Response("broken", PlainResponse(CelExpression("request.headers.nope")), "x-broken"),
        Response("lines", PlainResponse(LiteralValue("a\r\nx-admin: true")), "x-lines"),
    )
    found = evaluate(scheme(identities=[api_keys()], responses=stage_lines), ALICE, SERVICES)
    assert found.response_headers == {"x-user": "alice", "x-json": '{"a":"GET","b":1}'}
    assert found.dynamic_metadata == {"ext": {"n": "alice"}}
    assert dict(trail(found)) | {"skipped": "skipped", "broken": "error", "lines": "error"} == dict(trail(found))
    refused = evaluate(scheme(rule(FAILS), identities=[api_keys()], responses=stage_lines), ALICE, SERVICES)
    assert (refused.response_headers, refused.dynamic_metadata) == ({}, {})


@pytest.mark.parametrize(
    ("value", "key", "passed_on", "made"),
    [
        (Selected("request.headers.authorization"), "Authorization", {"authorization"}, {}),
        (CelExpression("request.headers.authorization"), "authorization", {"authorization"}, {}),
        (CelExpression("request.headers.authorization"), "x-token", set(), {"x-token": "***"}),
        (LiteralValue("Bearer of-the-gateway"), "authorization", set(), {"authorization": "Bearer of-the-gateway"}),
    ],
)
def test_a_credential_is_passed_on_only_in_the_header_that_the_client_sent_it_in(
    value: Value, key: str, passed_on: set[str], made: dict[str, str]
) -> None:
    stage_lines = Response("stage_lines", PlainResponse(value), key)
    found = evaluate(scheme(identities=[api_keys()], responses=(stage_lines,)), ALICE, SERVICES)
    assert (set(found.passed_on), dict(found.response_headers)) == (passed_on, made)


def test_an_error_in_the_condition_of_a_response_denies() -> None:
    stage_lines = Response("user", PlainResponse(LiteralValue("x")), "x-user", when=ERRS)
    assert not evaluate(scheme(responses=(stage_lines,)), request(), Services()).allowed


# Properties of identities


@pytest.mark.parametrize(
    ("properties", "condition", "status"),
    [
        ((Property("role", LiteralValue("admin")),), "auth.identity.role eq admin", 200),
        ((Property("role", Selected("auth.identity.metadata.name")),), "auth.identity.role eq alice", 200),
        ((Property("metadata", LiteralValue("x")),), "auth.identity.metadata.name eq alice", 200),
        ((Property("metadata", LiteralValue("x"), overwrite=True),), "auth.identity.metadata eq x", 200),
        ((Property("role", CelExpression("request.method")),), "auth.identity.role eq GET", 200),
        ((Property("role", CelExpression("request.nope")),), "request.method eq GET", 401),
        ((Property("role", CelExpression("syntax error")),), "request.method eq GET", 401),
        ((Property("a", LiteralValue(1)), Property("b", Selected("auth.identity.a"))), "auth.identity.b eq ", 200),
        ((Property("role", Selected("user-{request.method}")),), "auth.identity.role eq user-GET", 200),
    ],
)
def test_identities_are_extended(properties: tuple[Property, ...], condition: str, status: int) -> None:
    guarded = scheme(rule(condition), identities=[api_keys(properties=properties)])
    assert evaluate(guarded, ALICE, SERVICES).status == status


def test_what_is_not_an_object_cannot_be_extended() -> None:
    plain = Identity("plain", Plain("request.method"), properties=(Property("a", LiteralValue(1)),))
    assert evaluate(scheme(identities=[plain]), request(), Services()).status == 401


@pytest.mark.parametrize(
    ("selector", "status"), [("request.method", 200), ("request.nope", 401), ("metadata.null", 401)]
)
def test_a_plain_identity_must_be_there(selector: str, status: int) -> None:
    guarded = scheme(identities=[Identity("plain", Plain(selector))])
    assert evaluate(guarded, request(metadata={"null": None}), Services()).status == status


# The API server


class Server:
    """Knows one token, grants one verb, and records the requests."""

    def __init__(self, *, away: bool = False) -> None:
        self.asked: list[object] = []
        self._away = away

    def token(self, token: str, audiences: tuple[str, ...]) -> Review:
        self.asked.append((token, audiences))
        if self._away:
            raise Unavailable("connection refused")
        user = {"username": "system:serviceaccount:shop:web", "groups": ["system:authenticated"]}
        return Review(token.startswith("kube-"), status={"authenticated": True, "user": user})

    def access(self, spec: Mapping[str, object]) -> Review:
        self.asked.append(dict(spec))
        if self._away:
            raise Unavailable("connection refused")
        return Review(spec["user"] == "alice", "no RBAC rule")


@pytest.mark.parametrize(
    ("token", "audiences", "asked", "status"),
    [
        ("kube-t0ken", (), ("shop.example",), 200),
        ("kube-t0ken", ("a", "b"), ("a", "b"), 200),
        ("other-t0ken", (), ("shop.example",), 401),
    ],
)
def test_kubernetes_tokens_are_reviewed(token: str, audiences: tuple[str, ...], asked: object, status: int) -> None:
    server = Server()
    guarded = scheme(
        rule("auth.identity.user.username eq system:serviceaccount:shop:web"),
        identities=[Identity("kube", TokenReview(audiences))],
    )
    facts = request(headers={"authorization": f"Bearer {token}"})
    found = evaluate(guarded, facts, Services(reviewer=server))
    assert (found.status, server.asked) == (status, [(token, asked)])
    assert token not in repr(found)
    assert trail(evaluate(guarded, facts, Services()))[0] == ("kube", "unknown")
    assert trail(evaluate(guarded, facts, Services(reviewer=Server(away=True))))[0] == ("kube", "error")


RESOURCE: dict[str, Value] = {"resource": LiteralValue("pods"), "verb": Selected("request.method.@case:lower")}


@pytest.mark.parametrize(
    ("access", "spec", "verdict"),
    [
        (
            SubjectAccess(LiteralValue("alice"), ("dev",)),
            {"user": "alice", "groups": ["dev"], "nonResourceAttributes": {"path": "/orders?x=1", "verb": "get"}},
            "accepted",
        ),
        (
            SubjectAccess(Selected("request.headers.x-user"), resource=RESOURCE),
            {"user": "bob", "resourceAttributes": {"resource": "pods", "verb": "get"}},
            "refused",
        ),
        (SubjectAccess(Selected("request.headers.nope")), None, "error"),
        (SubjectAccess(CelExpression("request.nope")), None, "error"),
    ],
)
def test_accesses_are_reviewed(access: SubjectAccess, spec: object, verdict: str) -> None:
    server = Server()
    guarded = scheme(Authorization("sar", access))
    facts = request(headers={"x-user": "bob"})
    found = evaluate(guarded, facts, Services(reviewer=server))
    assert trail(found)[-1] == ("sar", verdict)
    assert server.asked == ([spec] if spec else [])
    if verdict == "refused":
        assert found.message == "not authorized: no RBAC rule"
    if spec:
        assert trail(evaluate(guarded, facts, Services()))[-1] == ("sar", "unknown")
        assert trail(evaluate(guarded, facts, Services(reviewer=Server(away=True))))[-1] == ("sar", "error")
