"""Rewritten predicates: with some tests decided, or with some tests supporting or opposing the whole."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.engine.trace import trace
from eastgate.ir import (
    ALWAYS,
    NEVER,
    AllowAny,
    And,
    Chain,
    Computed,
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
    Prefix,
    Request,
    Rule,
    atoms,
    mentions,
    rewrite,
)
from eastgate.ir.attributes import METHOD, PORT, Attribute
from eastgate.ir.predicates import assume
from tests.engine.brute_force import HEADER, WORLD, atoms_about, holds

VALUES = [{METHOD: method, PORT: port} for method, port in product(WORLD[METHOD], WORLD[PORT])]


def _wider(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    parts = st.lists(inner, max_size=3).map(tuple)
    return st.builds(And, parts) | st.builds(Or, parts) | st.builds(Not, inner)


predicates = st.recursive(atoms_about(METHOD) | atoms_about(PORT), _wider, max_leaves=6)


def _settled(predicate: Predicate, port: int) -> Predicate:
    """Decide every test of the port."""

    def settle(atom: object) -> Predicate:
        assert isinstance(atom, Is)
        if atom.attribute != PORT:
            return atom
        return ALWAYS if atom.accepts(port) else NEVER

    return rewrite(predicate, settle)


@given(predicates, st.sampled_from([1, 2, 3]))
def test_the_residual_at_a_known_port_has_the_same_meaning_there(predicate: Predicate, port: int) -> None:
    settled = _settled(predicate, port)
    assert PORT not in mentions(settled)
    assert all(holds(settled, values) == holds(predicate, values) for values in VALUES if values[PORT] == port)


@given(predicates)
def test_certain_parts_disappear(predicate: Predicate) -> None:
    decided = rewrite(predicate, lambda atom: ALWAYS if isinstance(atom, Is) and atom.attribute == PORT else NEVER)
    assert decided in (ALWAYS, NEVER)
    assert list(atoms(decided)) == []


def _helped(predicate: Predicate, values: Mapping[Attribute, Known], helps: bool) -> bool:
    """Evaluate a predicate in which each test of the port supports it."""
    match predicate:
        case Is(attribute):
            return helps if attribute == PORT else holds(predicate, values)
        case Not(part):
            return not _helped(part, values, not helps)
        case And(parts):
            return all(_helped(part, values, helps) for part in parts)
        case Or(parts):
            return any(_helped(part, values, helps) for part in parts)
        case _:
            raise AssertionError(predicate)


@given(predicates, st.booleans())
def test_assumed_atoms_support_or_oppose_the_predicate(predicate: Predicate, held: bool) -> None:
    assumed = assume(predicate, lambda atom: isinstance(atom, Is) and atom.attribute == PORT, held=held)
    assert PORT not in mentions(assumed)
    assert all(holds(assumed, values) == _helped(predicate, values, held) for values in VALUES)


# A repeated attribute

RED, BLUE = OneOf(frozenset({"red"})), OneOf(frozenset({"blue"}))


@pytest.mark.parametrize(
    ("value", "matcher", "joined", "accepted"),
    [
        ("red", RED, False, True),
        ("blue", RED, False, False),
        (None, RED, False, False),
        (("red", "blue"), RED, False, True),
        (("blue", "green"), RED, False, False),
        (("red", "blue"), RED, True, False),
        (("red", "blue"), OneOf(frozenset({"red,blue"})), True, True),
    ],
)
def test_any_value_is_enough(value: Known, matcher: OneOf, joined: bool, accepted: bool) -> None:
    assert Is(HEADER, matcher, joined).accepts(value) is accepted


def _is_long(values: Mapping[Attribute, object]) -> bool:
    return len(str(values[HEADER])) > 3


@pytest.mark.parametrize(
    ("value", "pattern", "held"),
    [
        ("blue", None, True),
        ("red", None, False),
        (("red", "sky"), None, True),  # as one text: red,sky
        (("red", "sky"), (HEADER, ".{4,}"), False),
        (("red", "blue"), (HEADER, ".{4,}"), True),
        ("blue", (HEADER, ".{4,}"), True),
    ],
)
def test_a_pattern_must_match_any_value_and_other_tests_see_one_text(
    value: Known, pattern: tuple[Attribute, str] | None, held: bool
) -> None:
    assert Computed("is long", frozenset({HEADER}), _is_long, pattern=pattern).holds({HEADER: value}) is held


@pytest.mark.parametrize("on_error", [True, False])
def test_an_error_counts_as_on_error(on_error: bool) -> None:
    assert Computed("errs", frozenset({HEADER}), lambda _: bool(1 // 0), on_error).holds({HEADER: "x"}) is on_error


ON_1, IS_A = Is(PORT, OneOf(frozenset({1}))), Is(METHOD, OneOf(frozenset({"a"})))


@pytest.mark.parametrize(
    ("predicate", "held", "assumed"),
    [
        (Or((ON_1, IS_A)), False, IS_A),
        (Or((ON_1, IS_A)), True, ALWAYS),
        (And((ON_1, IS_A)), True, IS_A),
        (And((ON_1, IS_A)), False, NEVER),
        (And((Not(ON_1), IS_A)), True, IS_A),
        (Or((Not(ON_1), IS_A)), False, IS_A),
    ],
)
def test_assumed_attributes_are_left_out(predicate: Predicate, held: bool, assumed: Predicate) -> None:
    assert assume(predicate, lambda atom: atom == ON_1, held=held) == assumed


def test_the_text_of_a_near_miss_leaves_out_the_name_of_its_attribute() -> None:
    """The text leaves out only the attribute itself. A value or an expression may contain the same words."""
    method_is = Computed("method is GET", frozenset({METHOD}), lambda _values: False)
    alternatives = Or((Is(METHOD, OneOf(frozenset({"PUT", "method is PUT"}))), Not(Is(METHOD, Prefix("G"))), method_is))
    rule = Rule(alternatives, Origin(PolicyRef("Policy", "app", "p"), 0))
    layer = Layer(Placement(None, "workload"), Chain((AllowAny("allow", (rule,)),)))
    (nearest,) = trace([layer], Request({METHOD: "GET"})).layers[0].nearest
    assert [missed.wanted for missed in nearest.missed] == ["PUT or method is PUT or not G* or method is GET"]
