"""What a reader of schemes can say before anything is evaluated."""

from __future__ import annotations

import pytest

from eastgate.dialects.kuadrant.authorino import problems
from eastgate.dialects.kuadrant.authorino.model import All, AnyOf, CelPredicate, Pattern, PatternOperator
from eastgate.languages.cel import CelProblem


@pytest.mark.parametrize(
    ("url", "bad"),
    [
        ("http://svc.shop.svc:8080/x?y=1", False),
        ("https://example.com", False),
        ("http://svc/{request.path}?u={auth.identity.sub.@case:lower}", False),
        ("https://{request.host}/x", False),
        ("ftp://x/", True),
        ("svc/x", True),
        ("http:///x", True),
        ("http://u:p@svc/", True),
        ("http://svc/a b", True),
        ("http://svc:99999/", True),
        ("http://svc/{request.path", True),
        ("http://svc/{request.@nope}", True),
    ],
)
def test_addresses(url: str, bad: bool) -> None:
    assert (problems.url_problem(url) is not None) is bad


@pytest.mark.parametrize(
    ("pattern", "bad"),
    [
        (Pattern("request.path", PatternOperator.EQ, "("), False),
        (Pattern("request.path", PatternOperator.MATCHES, "^/a"), False),
        (Pattern("request.path", PatternOperator.MATCHES, "("), True),
        (Pattern("request.#(", PatternOperator.EQ, "x"), True),
        (Pattern("", PatternOperator.EQ, "x"), True),
    ],
)
def test_patterns(pattern: Pattern, bad: bool) -> None:
    assert (problems.pattern_problem(pattern) is not None) is bad
    assert bool(problems.condition_problems(All((AnyOf((pattern,)),)))) is bad


@pytest.mark.parametrize(
    ("text", "as_value", "as_predicate"),
    [
        ("request.method == 'GET'", False, False),
        ("request.method", False, False),
        ("'x' + request.method", False, True),
        ("1", False, True),
        ("request.method ==", True, True),
        ("context.request.http.method == 'GET'", True, True),
    ],
)
def test_expressions(text: str, as_value: bool, as_predicate: bool) -> None:
    assert (problems.cel_problem(text) is not None) is as_value
    found = problems.predicate_problem(text)
    assert (found is not None) is as_predicate
    assert bool(problems.condition_problems(CelPredicate(text))) is as_predicate


def test_an_unknown_variable_names_those_that_there_are() -> None:
    found = problems.cel_problem("context.request")
    assert found == CelProblem(
        "there is no variable `context.request`",
        0,
        15,
        "there are `request`, `source`, `destination`, `metadata`, `auth`",
    )


@pytest.mark.parametrize(
    ("selector", "bad"), [("auth.identity.#", False), ("{request.path} and {request.host}", False), ("{a.@nope}", True)]
)
def test_selectors(selector: str, bad: bool) -> None:
    assert (problems.template_problem(selector) is not None) is bad
