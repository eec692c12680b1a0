"""A simplified predicate has the same meaning for every value of a tiny world."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.ir import ALWAYS, NEVER, And, InNetwork, Is, Known, Not, OneOf, Or, Predicate, Prefix, Present, Suffix
from eastgate.ir.attributes import ADDRESS, HOST, METHOD, PORT, Attribute
from eastgate.ir.symbolic.simplify import both, either, negation, straightened
from tests.engine.brute_force import HEADER, WORLD, atoms_about, holds


def _predicates(*attributes: Attribute) -> st.SearchStrategy[list[Predicate]]:
    atom = st.one_of(*map(atoms_about, attributes))
    literal = atom | st.builds(Not, atom)
    few = st.lists(literal, min_size=1, max_size=3).map(tuple)
    part = literal | st.builds(Or, few) | st.builds(And, few)
    return st.lists(part, max_size=4)


def _everything(*attributes: Attribute) -> Iterator[Mapping[Attribute, Known]]:
    for values in product(*(WORLD[attribute] for attribute in attributes)):
        yield dict(zip(attributes, values, strict=True))


@pytest.mark.parametrize("attributes", [(METHOD, PORT), (METHOD,), (HEADER, PORT)], ids=str)
@settings(max_examples=300)
@given(st.data())
def test_both_either_and_negation_keep_the_meaning(attributes: tuple[Attribute, ...], data: st.DataObject) -> None:
    parts = data.draw(_predicates(*attributes))
    all_of, any_of, none_of = both(parts), either(parts), negation(both(parts))
    for values in _everything(*attributes):
        held = [holds(part, values) for part in parts]
        assert holds(all_of, values) is all(held), values
        assert holds(any_of, values) is any(held), values
        assert holds(none_of, values) is not all(held), values


@settings(max_examples=300)
@given(st.data())
def test_a_predicate_without_negations_of_negations_means_the_same(data: st.DataObject) -> None:
    parts = data.draw(_predicates(METHOD, PORT))
    for predicate in (Or(tuple(parts)), Not(And(tuple(parts))), Not(Or((*parts, Not(And(tuple(parts[:2]))))))):
        straight = straightened(predicate)
        for values in _everything(METHOD, PORT):
            assert holds(straight, values) is holds(predicate, values), (predicate, values)


def _is(*values: str) -> Predicate:
    return Is(METHOD, OneOf(frozenset(values)))


A, B, AB = _is("a"), _is("b"), _is("a", "b")
RED, BLUE = (Is(HEADER, OneOf(frozenset({color}))) for color in ("red", "blue"))
ON_1, ON_2 = (Is(PORT, OneOf(frozenset({port}))) for port in (1, 2))


@pytest.mark.parametrize(
    ("parts", "shorter"),
    [
        ([], ALWAYS),
        ([A, B], NEVER),
        ([A, AB], A),
        ([A, Not(A)], NEVER),
        ([AB, Not(A)], B),
        ([_is("ab", "b"), Is(METHOD, Prefix("a"))], _is("ab")),
        ([_is("ab", "ba"), Is(METHOD, Prefix("a")), Is(METHOD, Suffix("b"))], _is("ab")),
        ([_is("b"), Is(METHOD, Prefix("a"))], NEVER),
        ([A, Not(Is(METHOD, Present()))], NEVER),
        ([ON_1, A, AB, ON_1], And((ON_1, A))),
        ([A, ON_1, AB], And((A, ON_1))),
        ([A, Or((A, ON_1))], A),
        ([A, Or((B, ON_1))], And((A, ON_1))),
        ([A, Or((B, Not(A)))], NEVER),
        ([A, NEVER], NEVER),
        ([AB, _is("a", "c"), B], NEVER),
        ([AB, _is("a", "c"), _is("a", "b", "c")], A),
        ([Is(METHOD, Suffix("")), Is(METHOD, Suffix("ab")), Is(METHOD, Suffix("b"))], Is(METHOD, Suffix("ab"))),
        ([Is(METHOD, Prefix("a")), Is(METHOD, Prefix("ab")), Is(METHOD, Present())], Is(METHOD, Prefix("ab"))),
        ([Is(METHOD, Suffix("a")), Is(METHOD, Suffix("b"))], NEVER),
        ([Is(METHOD, Prefix("a")), Is(METHOD, Prefix("b"))], NEVER),
        ([RED, Not(RED)], NEVER),
        ([RED, Not(RED), BLUE], NEVER),
        ([RED, BLUE], And((RED, BLUE))),
    ],
)
def test_conjunctions_become_shorter(parts: list[Predicate], shorter: Predicate) -> None:
    assert both(parts) == shorter


@pytest.mark.parametrize(
    ("parts", "shorter"),
    [([], NEVER), ([A, B], AB), ([A, A], A), ([A, ALWAYS], ALWAYS), ([A, And((A, ON_1))], A)],
)
def test_disjunctions_become_shorter(parts: list[Predicate], shorter: Predicate) -> None:
    assert either(parts) == shorter


STARTS, ENDS = Is(METHOD, Prefix("b")), Is(METHOD, Suffix("b"))
AT_H = Is(HOST, OneOf(frozenset({"h"})))
AT_SOME_HOST = Or((AT_H, Is(HOST, Prefix("x"))))
EITHER = Or((B, And((STARTS, ENDS))))  # the rest of two choices: `a` neither begins nor ends with `b`


@pytest.mark.parametrize(
    ("parts", "shorter"),
    [
        ([Or((A, STARTS)), Or((B, ENDS))], EITHER),
        ([ON_1, Or((A, STARTS)), AT_H, Or((B, ENDS))], And((ON_1, EITHER, AT_H))),
        ([Or((A, STARTS)), Or((B, ENDS)), ON_1, AT_H], And((EITHER, ON_1, AT_H))),
        ([Or((A, ON_1)), Or((B, ENDS))], And((Or((A, ON_1)), Or((B, ENDS))))),  # not about one attribute
        ([Or((A, ON_1)), Or((A, STARTS)), Or((B, ENDS))], And((Or((A, ON_1)), EITHER))),
        ([AT_SOME_HOST, Or((A, STARTS)), Or((B, ENDS))], And((AT_SOME_HOST, EITHER))),
        ([Or((A, STARTS)), Or((ON_1, RED))], And((Or((A, STARTS)), Or((ON_1, RED))))),
        ([Or((A, STARTS)), Or((_is("c"), Is(METHOD, Suffix("c"))))], And((STARTS, Is(METHOD, Suffix("c"))))),
        ([Or((A, B)), Or((_is("c"), _is("d")))], NEVER),
        ([ON_1, A, AT_H, AB], And((ON_1, A, AT_H))),
        ([STARTS, Not(STARTS)], NEVER),
        ([STARTS, Not(ENDS)], And((STARTS, Not(ENDS)))),
        ([Is(METHOD, Present()), Not(ENDS)], And((Is(METHOD, Present()), Not(ENDS)))),
    ],
    ids=itertools.count(),
)
def test_choices_and_other_parts_about_one_attribute_become_shorter(parts: list[Predicate], shorter: Predicate) -> None:
    assert both(parts) == shorter


def _within(*texts: str) -> Predicate:
    return Is(ADDRESS, InNetwork(tuple(map(ip_network, texts))))


@pytest.mark.parametrize(
    ("parts", "shorter"),
    [
        ([_within("10.0.0.0/8"), A, _within("fd00::/8")], Or((A, _within("10.0.0.0/8", "fd00::/8")))),
        ([_within("0.0.0.0/0"), A, _within("::/0")], ALWAYS),
        ([A, NEVER], A),
        ([Is(METHOD, OneOf(frozenset())), ON_1], Or((Is(METHOD, OneOf(frozenset())), ON_1))),
        ([Is(METHOD, Prefix(str(n))) for n in range(61)], Or(tuple(Is(METHOD, Prefix(str(n))) for n in range(61)))),
    ],
    ids=itertools.count(),
)
def test_networks_become_one_and_long_lists_stay(parts: list[Predicate], shorter: Predicate) -> None:
    assert either(parts) == shorter


@pytest.mark.parametrize(
    "parts",
    [
        [Or((A, STARTS)), Or((A, ENDS))],
        [Or((A, STARTS)), Or((B, ENDS)), Or((AB, Not(ENDS)))],
        [Or((A, B)), Or((STARTS, ENDS)), ON_1],
        [Or((A, ON_1)), Or((B, ON_2))],
        [ON_1, Or((A, STARTS)), Or((Not(A), ENDS)), AB],
    ],
    ids=itertools.count(),
)
def test_choices_of_one_attribute_mean_the_same_when_they_are_multiplied(parts: list[Predicate]) -> None:
    shorter = both(parts)
    for values in _everything(METHOD, PORT):
        assert holds(shorter, values) is all(holds(part, values) for part in parts), values
