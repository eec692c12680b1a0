"""CEL over JSON documents: dynamic types, missing members, bounds."""

from __future__ import annotations

from functools import partial

import pytest

from eastgate.dialects.cel import CelEvaluationError, CelProblem, DocumentExpression, compile_document_cel
from tests.effort import effort_of

DOCUMENT: dict[str, object] = {
    "request": {"method": "GET", "path": "/orders", "size": 12, "headers": {"x-user": "alice"}, "nothing": None},
    "auth": {"identity": {"groups": ["dev", "ops"], "age": 18, "ratio": 1.5, "big": 2**60 + 1, "nul": "a\0b"}},
}


def compiled(text: str) -> DocumentExpression:
    found = compile_document_cel(text)
    assert isinstance(found, DocumentExpression), found
    return found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('request.method == "GET"', True),
        ("request.path", "/orders"),
        ('request.headers["x-user"]', "alice"),
        ("auth.identity.groups", ["dev", "ops"]),
        ('"ops" in auth.identity.groups', True),
        ("auth.identity.groups.exists(g, auth.identity.groups.all(h, h == h) && g == 'ops')", True),
        ("auth.identity.age == 18", True),
        ("auth.identity.age >= 18", True),
        ("auth.identity.ratio", 1.5),
        ("request.size", 12.0),
        ("request.nothing", None),
        ("has(request.nope)", False),
        ("has(request.headers)", True),
        ('request.?nope.orValue("none")', "none"),
        ('request[?"nope"].hasValue()', False),
        ('"GET".lowerAscii()', "get"),
        ('request.path.split("/")', ["", "orders"]),
        ('["a", "b"].join("-")', "a-b"),
        ('"%s is %d".format(["a", 1])', "a is 1"),
        ('{"a": 1}', {"a": 1}),
        ('timestamp("2026-01-31T12:00:00Z")', "2026-01-31T12:00:00Z"),
        ('duration("90s")', "90s"),
        ('b"abc"', "YWJj"),
        ("size(metadata)", 0),
    ],
)
def test_answers(text: str, value: object) -> None:
    assert compiled(text).evaluate(DOCUMENT) == value


@pytest.mark.parametrize(
    "text",
    [
        "request.nope",
        "request.nope.deeper == 1",
        "has(request.nope.deeper)",
        "source.principal",
        "auth.identity.age + 1",
        "auth.identity.big == 1",
        "auth.identity.nul == 'a'",
        "auth.identity.groups[7]",
        "request.method == 'GET' && request.nope",
        "request.?nope",
        "type(1)",
    ],
)
def test_no_answer_is_an_error(text: str) -> None:
    with pytest.raises(CelEvaluationError):
        compiled(text).evaluate(DOCUMENT)


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("request.method == 'GET'", {("request", "method")}),
        ("request['headers'].x", {("request", "headers", "x")}),
        ("request.?headers.?x.hasValue()", {("request", "headers", "x")}),
        ("has(request.headers.x)", {("request", "headers", "x")}),
        ("request.all(k, k != 'x')", {("request",)}),
        ("auth.identity.groups.exists(g, g == request.path)", {("auth", "identity", "groups"), ("request", "path")}),
        ("request[request.method]", {("request",), ("request", "method")}),
        ("[1].map(request, request)", set()),
        ("1 == 1", set()),
    ],
)
def test_what_an_expression_can_look_at_is_known(text: str, mentions: set[tuple[str, ...]]) -> None:
    assert compiled(text).mentions == mentions


def test_nothing_else_of_a_document_is_looked_at() -> None:
    broken = {"request": {"method": "GET", "body": "a\0b", "n": float("nan")}, "auth": object()}
    assert compiled('request.method == "GET"').evaluate(broken) is True


@pytest.mark.parametrize(
    "text",
    [
        "",
        "request.method ==",
        "context.request",
        "nope(1)",
        "'a' + 1",
        "(" * 200 + "1" + ")" * 200,
        "request.a.exists(a, request.b.exists(b, request.c.exists(c, a == b && b == c)))",
        "'a'" + ".replace('a', '" + "a" * 200 + "')" * 5,
        "request.path" + ".replace('', request.path)" * 3,
        "request.a.map(a, request.a.map(b, request.path + request.path))",
        "['a', 'b'].join(request.path.replace('a', request.path))",
        "x" * 20_000,
        "'\ud800'",
    ],
)
def test_what_cannot_be_understood_or_bounded_is_a_problem(text: str) -> None:
    assert isinstance(compile_document_cel(text), CelProblem)


def test_an_accepted_expression_ends_soon_on_a_large_document() -> None:
    document = {"request": {"path": "/a" * 5_000, "groups": [str(number) for number in range(9_000)]}}
    for text in (
        "request.groups.all(g, g != 'x')",
        "request.path.replace('a', 'bbbbbbbbbb')",
        "request.path.matches('(a+)+$')",
    ):
        expression = compiled(text)
        assert effort_of(partial(expression.evaluate, document))[1] < 500
    with pytest.raises(CelEvaluationError):
        compiled("request.groups.all(g, g != 'x')").evaluate({"request": {"groups": ["y"] * 50_000}})


def test_an_expression_is_compiled_once() -> None:
    assert compile_document_cel("request.method == 'X'") is compile_document_cel("request.method == 'X'")
