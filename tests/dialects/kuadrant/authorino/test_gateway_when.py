"""`when` of an AuthPolicy: predicates on the attributes of the gateway's filter."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import Services
from eastgate.dialects.kuadrant.authorino.model import All, CelPredicate, Scheme
from eastgate.dialects.kuadrant.authorino.problems import predicate_problem
from eastgate.ir.attributes import UNKNOWN
from tests.dialects.kuadrant.authorino.schemes import api_keys, request, scheme

BODY = '{"my": {"value": "hello", "list": ["a", "b", "c"], "n": 3, "a/b": true}}'


def guarded(*predicates: str) -> Scheme:
    """Return a scheme that denies every caller if its predicates hold."""
    when = All(tuple(CelPredicate(text, at_gateway=True) for text in predicates))
    return scheme(identities=[api_keys()], when=when)


def is_skipped(predicate: str, *, compat: bool = False, **facts: Any) -> bool | None:
    """Return whether the scheme is skipped; None if the predicate errs or may err, which denies."""
    judged = evaluate(guarded(predicate), request(**facts), Services(authorino_compat=compat))
    if judged.allowed:
        return True
    return False if judged.status == 401 else None


@pytest.mark.parametrize(
    ("predicate", "facts", "skipped"),
    [
        ("request.method == 'GET'", {}, False),
        ("request.method == 'POST'", {}, True),
        ("request.path == '/orders?x=1'", {}, False),
        ("request.url_path == '/orders'", {}, False),
        ("request.url_path == '/a%20b'", {"path": "/a%20b?x"}, False),
        ("request.query == 'x=1'", {}, False),
        ("request.query == ''", {"path": "/orders"}, False),
        ("request.host == 'shop.example'", {}, False),
        ("request.headers['x-team'] == 'a'", {"headers": {"x-team": "a"}}, False),
        ("'x-team' in request.headers", {}, True),
        ("request.headers['x-team'] == 'a'", {}, None),
        ("request.useragent == 'curl'", {"headers": {"user-agent": "curl"}}, False),
        ("request.useragent == 'curl'", {}, True),
        ("request.referer == null", {}, False),
        ("source.address == '10.0.0.7:1234'", {}, False),
        ("source.address == '[::1]:1234'", {"address": "::1"}, False),
        ("source.address.startsWith('10.')", {"port": UNKNOWN}, None),
        ("source.port == 1234", {}, False),
        ("connection.mtls", {}, None),
        ("request.method == 'GET'", {"method": UNKNOWN}, False),  # it may hold: the scheme must allow too
        ("request.headers['x-team'] == 'a'", {"headers": UNKNOWN}, None),
        ("requestBodyJSON('/my/value') == 'hello'", {"body": BODY}, False),
        ("requestBodyJSON('/my/list/1') == 'b'", {"body": BODY}, False),
        ("requestBodyJSON('/my/n') == 3", {"body": BODY}, False),
        ("requestBodyJSON('/my/a~1b')", {"body": BODY}, False),
        ("requestBodyJSON('/a/b/c') == null", {"body": BODY}, False),
        ("requestBodyJSON('/my/value') == 'bye'", {"body": BODY}, True),
        ("requestBodyJSON('/my/value') == 'hello'", {"body": "no JSON"}, None),
        ("requestBodyJSON('/a') == 1", {"body": '{"a": 1, "a": 2}'}, None),  # the application may read either
        ("requestBodyJSON('/a') == 1", {"body": '{"a": NaN}'}, None),
        ("requestBodyJSON('/a') == 'b'", {"body": '{"a": "\\ud800"}'}, None),
        ("requestBodyJSON('/a') == 1", {"body": f'{{"a": 2, "b": {"[" * 5000}{"]" * 5000}}}'}, None),
        ("requestBodyJSON('/a') == 1", {"body": f'{{"a": 2, "b": {"[" * 60}{"]" * 60}}}'}, True),
        ("requestBodyJSON('/my/value') == 'hello'", {}, None),
        ("requestBodyJSON('/my/value') == 'hello'", {"body": UNKNOWN}, None),
    ],
)
@pytest.mark.parametrize("compat", [False, True])
def test_predicates(predicate: str, facts: dict[str, Any], skipped: bool | None, compat: bool) -> None:
    assert is_skipped(predicate, compat=compat, **facts) is skipped


def test_all_predicates_must_hold() -> None:
    judged = evaluate(guarded("request.method == 'GET'", "request.path == '/x'"), request(), Services())
    assert judged.allowed


@pytest.mark.parametrize("text", ["auth.identity.sub == 'a'", "metadata.a == 'b'", "request.", "'a'"])
def test_what_a_gateway_does_not_have_is_a_problem(text: str) -> None:
    assert predicate_problem(text, at_gateway=True) is not None


def test_the_function_for_bodies_is_the_gateways_alone() -> None:
    assert predicate_problem("requestBodyJSON('/a') == 'b'", at_gateway=True) is None
    assert predicate_problem("requestBodyJSON('/a') == 'b'") is not None


def test_a_predicate_on_a_body_looks_at_nothing_else() -> None:
    assert not CelPredicate("requestBodyJSON('/a') == 'b'", at_gateway=True).looks_at_path
    assert CelPredicate("request.url_path == '/'", at_gateway=True).looks_at_path
