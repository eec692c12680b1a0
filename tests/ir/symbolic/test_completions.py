"""Completions: the assumed values, the values that matter, and the results of tests."""

from __future__ import annotations

import pytest

from eastgate import Settings
from eastgate.ir import (
    AllowAny,
    And,
    Chain,
    Computed,
    Deny,
    Is,
    Known,
    Layer,
    Not,
    OneOf,
    Or,
    Origin,
    Placement,
    PolicyRef,
    Predicate,
    Request,
    Rule,
    Stage,
)
from eastgate.ir.attributes import HOST, IDENTITY, METHOD, PORT, Attribute, header
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.cells import OTHER
from eastgate.ir.symbolic.completions import Completion, complete
from eastgate.ir.symbolic.judging import judge
from eastgate.ir.symbolic.partial import ArmIndex, Partial
from tests.ir.symbolic.drawing import decide

TEAM, SECOND_TEAM = header("x-team"), header("x-second-team")
X = "spiffe://td/ns/a/sa/x"


def _is(attribute: Attribute, value: str, *, joined: bool = False) -> Is:
    return Is(attribute, OneOf(frozenset({value})), joined=joined)


GET, AT_H = _is(METHOD, "GET"), _is(HOST, "h")
NICE = Computed("it is nice", frozenset({METHOD}), lambda values: values[METHOD] == "GET")


def _rule(when: Predicate) -> Rule:
    return Rule(when, Origin(PolicyRef("P", "n", "p"), 0))


def _layer(*stages: Stage) -> Layer:
    return Layer(Placement(None, "l"), Chain(stages))


def _allowing(when: Predicate) -> Layer:
    return _layer(AllowAny("allow", (_rule(when),)))


def _denying(when: Predicate) -> Layer:
    return _layer(Deny("deny", (_rule(when),)))


@pytest.mark.parametrize(
    ("when", "assumed", "decisive"),
    [
        (GET, {METHOD: OTHER}, {METHOD: OTHER}),
        (And((GET, Or((AT_H, Not(AT_H))))), {HOST: OTHER, METHOD: OTHER}, {METHOD: OTHER}),
        (And((GET, AT_H)), {HOST: OTHER}, {HOST: OTHER}),  # with another host, the method would decide
    ],
)
def test_assumed_values_and_values_that_matter(
    when: Predicate, assumed: dict[Attribute, Known], decisive: dict[Attribute, Known]
) -> None:
    completion = complete(_allowing(when), Request({}))
    assert not completion.outcome.allowed
    assert dict(completion.assumed) == assumed
    assert dict(completion.decisive) == decisive


def test_a_test_over_something_unknown_may_come_out_either_way() -> None:
    for layer, held in ((_allowing(NICE), False), (_denying(NICE), True)):
        completion = complete(layer, Request({}))
        assert completion == Completion(
            completion.outcome, completion.assumed, ((NICE, held),), decisive=completion.decisive
        )
        assert not completion.outcome.allowed
        assert judge(layer, completion.of(Request({}))) == completion.outcome
    assert complete(_allowing(NICE), Request({METHOD: "GET"})).outcome.allowed
    assert complete(_allowing(NICE), Request({METHOD: "GET"})).tests == ()


def test_each_header_has_its_own_values() -> None:
    completion = complete(_denying(And((_is(TEAM, "red"), _is(SECOND_TEAM, "blue")))), Request({}))
    assert dict(completion.assumed) == {TEAM: "red", SECOND_TEAM: "blue"}
    completion = complete(_denying(And((_is(TEAM, "red"), _is(TEAM, "blue")))), Request({}))
    assert {frozenset(value) for _, value in completion.assumed if isinstance(value, tuple)} == {
        frozenset({"red", "blue"})
    }


def test_an_expression_may_hold_of_several_values_that_no_test_of_one_value_meets() -> None:
    joined, apart = _is(TEAM, "red,blue", joined=True), _is(TEAM, "red,blue")
    assert not complete(_allowing(Or((Not(joined), apart))), Request({})).outcome.allowed  # red, blue


def test_a_rule_on_callers_is_found_whether_or_not_their_cell_is_known() -> None:
    callers = CallerCells(Settings.from_mapping({"trustDomain": "td"}))
    partial = Partial(_allowing(_is(IDENTITY, X)), lambda when: when, lambda outcome, _: outcome, ArmIndex(callers))
    outcome = decide(partial.tree(), Request({IDENTITY: X, PORT: 80}))
    assert outcome is not None
    assert outcome.allowed
