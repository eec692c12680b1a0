"""The engine's decisions on partly known requests equal those of a trial of every value."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from eastgate.engine import reference
from eastgate.engine.compiled import compile_layers
from eastgate.ir import (
    AllowAny,
    Chain,
    Computed,
    Deny,
    Is,
    Layer,
    Not,
    OneOf,
    Origin,
    Placement,
    PolicyRef,
    Predicate,
    Prefix,
    Request,
    Rule,
    Suffix,
)
from eastgate.ir.attributes import METHOD
from tests.engine.brute_force import WORLD, allows, completions, questions


def _all_allow(made: Sequence[Layer], request: Request) -> bool:
    answers = {name: str(answer) for name, answer in request.answers.items()}
    return all(allows(made, values, answers) for values in completions(made, request))


@settings(max_examples=400, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(questions())
def test_a_request_is_allowed_if_every_value_of_its_unknown_attributes_is(
    asked: tuple[Sequence[Layer], Request],
) -> None:
    made, request = asked
    program = compile_layers(made)
    everything_allows = _all_allow(made, request)
    assert program.outcome(program.decide(request)).allowed == everything_allows
    assert reference.decide(made, request).allowed == everything_allows


@settings(max_examples=200, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(questions())
def test_a_complete_request_gets_the_answer_of_the_letter(asked: tuple[Sequence[Layer], Request]) -> None:
    made, request = asked
    complete = Request({**{attribute: WORLD[attribute][-1] for attribute in WORLD}, **request.values}, request.answers)
    program = compile_layers(made)
    assert program.outcome(program.decide(complete)).allowed == _all_allow(made, complete)


def _rule(when: Predicate) -> Rule:
    return Rule(when, Origin(PolicyRef("P", "ns", "p"), 0))


def _denying(*when: Predicate) -> list[Layer]:
    return [Layer(Placement(None, "l"), Chain((Deny("deny", tuple(map(_rule, when))),)))]


def _allowing(*when: Predicate) -> list[Layer]:
    return [Layer(Placement(None, "l"), Chain((AllowAny("allow", tuple(map(_rule, when))),)))]


_A, _B, _ENDS = Is(METHOD, Prefix("a")), Is(METHOD, OneOf(frozenset({"b"}))), Is(METHOD, Suffix("b"))


@pytest.mark.parametrize(
    ("made", "allowed"),
    [
        (_allowing(_A, Not(_A)), True),
        (_allowing(_A, _B), False),
        (_denying(_A), False),
        (_denying(), True),
        (_allowing(_ENDS, Not(_B)), True),
    ],
)
def test_the_brute_force_evaluator_itself(made: list[Layer], allowed: bool) -> None:
    assert _all_allow(made, Request({})) is allowed


@pytest.mark.parametrize("on_error", [False, True])
@pytest.mark.parametrize("make", [_allowing, _denying])
def test_a_pattern_over_something_unknown_is_never_taken_to_hold_or_to_fail(make: object, on_error: bool) -> None:
    """A test that no matcher can express may have either result, so an allow is an allow for every value."""
    pattern = Computed("is ab", frozenset({METHOD}), lambda values: values[METHOD] == "ab", on_error, (METHOD, "ab"))
    for whens in ([pattern], [Not(pattern)], [pattern, Not(pattern)], [pattern, _A]):
        made = make(*whens)  # type: ignore[operator]
        program = compile_layers(made)
        assert program.outcome(program.decide(Request({}))).allowed <= _all_allow(made, Request({}))
