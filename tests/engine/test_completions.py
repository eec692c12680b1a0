"""What is unknown is never a reason to hang: past a bound the answer is deny."""

from __future__ import annotations

import pytest

from eastgate.engine.completions import complete
from eastgate.policy import (
    ALWAYS,
    AllowAny,
    And,
    Chain,
    Deny,
    Is,
    Layer,
    Not,
    Origin,
    PolicyRef,
    Prefix,
    Request,
    Rule,
    Suffix,
)
from eastgate.policy.attributes import HOST, METHOD, PATH, Attribute


def rule(number: int, *parts: Is | Not) -> Rule:
    return Rule(And(parts), Origin(PolicyRef("P", "n", f"p{number}"), 0))


def layer(*denied: Rule) -> Layer:
    return Layer("l", Chain((Deny("deny", denied), AllowAny("allow", (Rule(ALWAYS, denied[0].origin),)))))


def never_both(number: int, attribute: Attribute) -> tuple[Is, Not]:
    """A condition that no value meets, though only trying shows it."""
    return Is(attribute, Prefix(f"/{number}")), Not(Is(attribute, Prefix(f"/{number}")))


@pytest.mark.parametrize("many", [200, 2000])
def test_a_thousand_prefixes_and_suffixes_do_not_hang(many: int) -> None:
    rules = [rule(n, *never_both(n, PATH)) for n in range(many)]
    rules += [rule(n, Is(PATH, Suffix(f"{n}.x")), Not(Is(PATH, Suffix(f"{n}.x")))) for n in range(many)]
    completion = complete(layer(*rules), Request({}))
    assert completion.exhausted
    assert not completion.outcome.allowed


def test_many_unknown_attributes_do_not_hang() -> None:
    rules = [rule(n, *never_both(n, a)) for n in range(60) for a in (PATH, HOST, METHOD)]
    completion = complete(layer(*rules), Request({}))
    assert not completion.outcome.allowed


def test_what_does_not_depend_on_the_unknown_is_answered_however_many_cells_there_are() -> None:
    rules = [rule(n, Is(METHOD, Prefix("X")), Is(PATH, Prefix(f"/{n}")), Is(PATH, Suffix(f"{n}"))) for n in range(500)]
    completion = complete(layer(*rules), Request({METHOD: "GET"}))
    assert completion.outcome.allowed
    assert not completion.exhausted
