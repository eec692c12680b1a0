"""Unknown attributes are completed with all values that matter. The search is bounded: past its limit it denies."""

from __future__ import annotations

import pytest

from eastgate.ir import (
    ALWAYS,
    AllowAny,
    And,
    Chain,
    Deny,
    Is,
    Layer,
    Not,
    OneOf,
    Origin,
    Placement,
    PolicyRef,
    Prefix,
    Request,
    Rule,
    SelectorCase,
    Suffix,
)
from eastgate.ir.attributes import HOST, METHOD, PATH, Attribute, header
from eastgate.ir.symbolic.completions import complete
from eastgate.ir.symbolic.judging import judge

TEAM = header("x-team")


def rule(number: int, *parts: Is | Not) -> Rule:
    return Rule(And(parts), Origin(PolicyRef("P", "n", f"p{number}"), 0))


def layer(*denied: Rule) -> Layer:
    return Layer(
        Placement(None, "l"), Chain((Deny("deny", denied), AllowAny("allow", (Rule(ALWAYS, denied[0].origin),))))
    )


def never_both(number: int, attribute: Attribute) -> tuple[Is, Not]:
    """A condition that no value meets. Only a search can show this."""
    return Is(attribute, Prefix(f"/{number}")), Not(Is(attribute, Prefix(f"/{number}")))


@pytest.mark.parametrize("many", [200, 2000])
def test_a_thousand_prefixes_and_suffixes_do_not_hang(many: int) -> None:
    rules = [rule(n, *never_both(n, PATH)) for n in range(many)]
    rules += [rule(n, Is(PATH, Suffix(f"{n}.x")), Not(Is(PATH, Suffix(f"{n}.x")))) for n in range(many)]
    completion = complete(layer(*rules), Request({}))
    assert completion.exhausted
    assert not completion.outcome.allowed


@pytest.mark.slow
def test_many_unknown_attributes_do_not_hang() -> None:
    rules = [rule(n, *never_both(n, a)) for n in range(60) for a in (PATH, HOST, METHOD)]
    completion = complete(layer(*rules), Request({}))
    assert not completion.outcome.allowed


def test_an_answer_without_unknown_attributes_exists_for_any_number_of_cells() -> None:
    rules = [rule(n, Is(METHOD, Prefix("X")), Is(PATH, Prefix(f"/{n}")), Is(PATH, Suffix(f"{n}"))) for n in range(500)]
    completion = complete(layer(*rules), Request({METHOD: "GET"}))
    assert completion.outcome.allowed
    assert not completion.exhausted


# Repeatable attributes


def test_an_unknown_header_may_meet_two_rules_at_once() -> None:
    """Return layers that deny only if both tests hold, which needs two values."""
    both = rule(0, Is(TEAM, OneOf(frozenset({"red"}))), Is(TEAM, OneOf(frozenset({"blue"}))))
    completion = complete(layer(both), Request({}))
    assert not completion.outcome.allowed
    assert dict(completion.assumed) == {TEAM: ("red", "blue")}
    assert completion.decisive == completion.assumed
    assert judge(layer(both), completion.of(Request({}))) == completion.outcome


def test_values_of_an_unknown_header_meet_no_rule_that_is_assumed_not_to_hold() -> None:
    """Every text that begins with `re` begins with `r`."""
    possible = rule(0, Is(TEAM, Prefix("r")), Not(Is(TEAM, Prefix("re"))), Is(TEAM, Prefix("b")))
    impossible = rule(0, Is(TEAM, Prefix("re")), Not(Is(TEAM, Prefix("r"))), Is(TEAM, Prefix("b")))
    assert not complete(layer(possible), Request({})).outcome.allowed
    assert complete(layer(impossible), Request({})).outcome.allowed


def test_an_expression_sees_one_text() -> None:
    """An attribute that only expressions read is one text, and cannot equal two."""
    red, blue = (Is(TEAM, OneOf(frozenset({color})), joined=True) for color in ("red", "blue"))
    assert complete(layer(rule(0, red, blue)), Request({})).outcome.allowed
    assert not complete(layer(rule(0, red)), Request({TEAM: "red"})).outcome.allowed
    assert complete(layer(rule(0, red)), Request({TEAM: ("red", "blue")})).outcome.allowed


@pytest.mark.slow
@pytest.mark.parametrize("many", [60, 1000])
def test_many_tests_of_an_unknown_header_do_not_hang(many: int) -> None:
    rules = [rule(n, *never_both(n, TEAM)) for n in range(many)]
    completion = complete(layer(*rules), Request({}))
    assert completion.exhausted
    assert not completion.outcome.allowed


def test_a_header_that_chooses_among_many_rules_is_answered() -> None:
    """One case for each value, and all of them allow."""
    allowing = Chain((AllowAny("allow", (rule(0),)),))
    cases = tuple(SelectorCase(Is(TEAM, OneOf(frozenset({str(n)}))), allowing) for n in range(500))
    completion = complete(Layer(Placement(None, "l"), allowing, cases), Request({}))
    assert completion.outcome.allowed
