"""Patterns compare exactly as Authorino's do, including the oddities."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.dialects.kuadrant.authorino.model import All, AnyOf, CelPredicate, Condition, Pattern, PatternOperator
from eastgate.ir import StepVerdict
from tests.dialects.kuadrant.authorino.schemes import pattern, request, verdict
from tests.effort import effort_of

METADATA = {
    "text": "blue",
    "empty": "",
    "number": 7,
    "whole": 7.0,
    "fraction": 1.5,
    "yes": True,
    "no": False,
    "null": None,
    "list": ["a", 7, True, None, "b c"],
    "none": [],
    "object": {"k": "v"},
    "nested": [["a"], {"b": 1}],
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("metadata.text eq blue", True),
        ("metadata.text eq Blue", False),
        ("metadata.text neq blue", False),
        ("metadata.missing eq ", True),
        ("metadata.missing eq null", False),
        ("metadata.missing neq x", True),
        ("metadata.null eq ", True),
        ("metadata.empty eq ", True),
        ("metadata.number eq 7", True),
        ("metadata.number eq 7.0", False),
        ("metadata.whole eq 7", True),
        ("metadata.fraction eq 1.5", True),
        ("metadata.yes eq true", True),
        ("metadata.no eq false", True),
        ("metadata.no eq ", False),
        ('metadata.object eq {"k":"v"}', True),
        ('metadata.list eq ["a",7,true,null,"b c"]', True),
        ("metadata.list incl a", True),
        ("metadata.list incl 7", True),
        ("metadata.list incl true", True),
        ("metadata.list incl b", False),
        ("metadata.list excl b", True),
        ("metadata.list excl 7", False),
        ("metadata.text incl blue", True),
        ("metadata.text incl blu", False),
        ("metadata.number incl 7", True),
        ("metadata.missing incl ", False),
        ("metadata.missing excl ", True),
        ("metadata.missing excl x", True),
        ("metadata.null incl ", False),
        ("metadata.none incl a", False),
        ("metadata.none excl a", True),
        ("metadata.object incl k", False),
        ('metadata.nested incl ["a"]', True),
        ("metadata.text matches lu", True),
        ("metadata.text matches ^lu", False),
        ("metadata.text matches ^blue$", True),
        ("metadata.text matches B", False),
        ("metadata.text matches (?i)B", True),
        ("metadata.missing matches ^$", True),
        ("metadata.missing matches .", False),
        ("metadata.number matches ^\\d$", True),
        ("metadata.list matches b c", True),
        ("metadata.list.# eq 5", True),
        ('metadata.list.#(=="a") eq a', True),
        ("request.path eq /orders?x=1", True),
        ("request.url_path eq /orders", True),
        ("request.query eq x=1", True),
        ("context.request.http.path eq /orders?x=1", True),
        ("context.request.http.host eq shop.example", True),
        ("context.request.http.headers.x-user eq alice", True),
        ("request.headers.x-user eq alice", True),
        ("request.method eq GET", True),
        ("request.time.seconds eq 1800000000", True),
        ("source.address eq 10.0.0.7", True),
        ("context.source.address.Address.SocketAddress.address eq 10.0.0.7", True),
        ('request.headers.x-user.@extract:{"sep":"i","pos":0} eq al', True),
    ],
)
def test_a_pattern_holds_as_in_authorino(text: str, holds: bool) -> None:
    facts = request(headers={"x-user": "alice"}, metadata=METADATA)
    assert verdict(pattern(text), facts) is (StepVerdict.ACCEPTED if holds else StepVerdict.REFUSED)


@pytest.mark.parametrize("bad", ["(", "a**", "[", "(?<n>", "\\1", "(?=a)", "x{99999}", "\\C{1000}{1000}"])
def test_a_bad_regular_expression_is_an_error_and_denies(bad: str) -> None:
    assert verdict(Pattern("request.path", PatternOperator.MATCHES, bad), request()) is StepVerdict.ERROR


@pytest.mark.parametrize("bomb", ["(a+)+$", "(a|a)*b", "(a*)*c", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*(.*)*(.*)*x"])
def test_no_regular_expression_takes_long(bomb: str) -> None:
    pattern = Pattern("request.path", PatternOperator.MATCHES, bomb)
    assert effort_of(lambda: verdict(pattern, request("/" + "a" * 60_000)))[1] < 500


@pytest.mark.parametrize(
    "bomb",
    [
        "|".join(["[@this,@this]"] * 40),
        "|".join(["@this.@pretty"] * 400),
        'request.headers.x-user.@replace:{"old":"","new":"' + "a" * 900 + '"}' * 3,
        "[" * 200 + "a" + "]" * 200,
        "*" * 2000 + "b",
    ],
)
def test_no_selector_takes_long_and_too_much_denies(bomb: str) -> None:
    pattern = Pattern(bomb, PatternOperator.NEQ, "never")
    found, effort = effort_of(lambda: verdict(pattern, request(headers={"x-user": "a" * 1000})))
    assert effort < 1_000
    assert found in (StepVerdict.ERROR, StepVerdict.ACCEPTED)


HOLDS, FAILS, ERRS = (
    pattern("request.method eq GET"),
    pattern("request.method eq PUT"),
    pattern("request.path matches ("),
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (All(()), StepVerdict.ACCEPTED),
        (AnyOf(()), StepVerdict.REFUSED),
        (All((HOLDS, FAILS)), StepVerdict.REFUSED),
        (AnyOf((FAILS, HOLDS)), StepVerdict.ACCEPTED),
        (All((FAILS, ERRS)), StepVerdict.REFUSED),
        (All((ERRS, FAILS)), StepVerdict.ERROR),
        (AnyOf((HOLDS, ERRS)), StepVerdict.ACCEPTED),
        (AnyOf((ERRS, HOLDS)), StepVerdict.ERROR),
        (AnyOf((FAILS, ERRS)), StepVerdict.ERROR),
        (All((AnyOf((FAILS, HOLDS)), All((HOLDS,)))), StepVerdict.ACCEPTED),
        (CelPredicate('request.method == "GET"'), StepVerdict.ACCEPTED),
        (CelPredicate('request.method == "PUT"'), StepVerdict.REFUSED),
        (CelPredicate("request.headers.nope == 'x'"), StepVerdict.ERROR),
        (CelPredicate("request.method"), StepVerdict.ERROR),
        (CelPredicate("request.method ="), StepVerdict.ERROR),
        (CelPredicate("'nope' in request.headers"), StepVerdict.REFUSED),
        (CelPredicate("has(request.body)"), StepVerdict.REFUSED),
        (CelPredicate("request.url_path.startsWith('/ord')"), StepVerdict.ACCEPTED),
        (CelPredicate("request.port == 1"), StepVerdict.ERROR),
        (CelPredicate("source.port == 1234"), StepVerdict.ACCEPTED),
        (CelPredicate("request.?headers.?x.orValue('') == ''"), StepVerdict.ACCEPTED),
    ],
)
def test_conditions_are_evaluated_from_left_to_right(condition: Condition, expected: StepVerdict) -> None:
    assert verdict(condition, request(headers={"x-user": "alice"})) is expected


# An independent implementation of the reference, for plain data and one level of names


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _naive(value: object, operator: PatternOperator, expected: str) -> bool:
    listed = value if isinstance(value, list) else [] if value is None else [value]
    match operator:
        case PatternOperator.EQ:
            return _text(value) == expected
        case PatternOperator.NEQ:
            return _text(value) != expected
        case PatternOperator.INCL:
            return any(_text(item) == expected for item in listed)
        case PatternOperator.EXCL:
            return all(_text(item) != expected for item in listed)
        case PatternOperator.MATCHES:
            return re.search(expected, _text(value)) is not None


SCALARS = (
    st.none() | st.booleans() | st.integers(-50, 50) | st.sampled_from(["", "a", "ab", "7", "true", "null", "A b"])
)
EXPECTED = st.sampled_from(["", "a", "b", "ab", "7", "-1", "true", "false", "null", "A b", "0"])


@given(SCALARS | st.lists(SCALARS, max_size=4), st.sampled_from(list(PatternOperator)), EXPECTED)
def test_patterns_agree_with_a_naive_reading(value: object, operator: PatternOperator, expected: str) -> None:
    if isinstance(value, list) and operator not in (PatternOperator.INCL, PatternOperator.EXCL):
        value = value[0] if value else None
    facts = request(metadata={"value": value})
    holds = verdict(Pattern("metadata.value", operator, expected), facts) is StepVerdict.ACCEPTED
    assert holds is _naive(value, operator, expected)
