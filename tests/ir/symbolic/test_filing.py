"""The index of predicates by caller finds each predicate that a caller may meet, and few others."""

from __future__ import annotations

from random import Random

import pytest

from eastgate import Settings
from eastgate.ir import ALWAYS, NEVER, AccountsOf, And, Is, Not, OneOf, Or, Predicate, Present, Suffix, atoms
from eastgate.ir.attributes import IDENTITY, MESH_NAME, METHOD
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    IdentityCell,
    OtherIdentities,
)
from eastgate.ir.symbolic.partial import Facts, PredicatesByCaller, residual

CALLERS = CallerCells(Settings.from_mapping({"trustDomain": "td"}))
X, Y, FOREIGN = "spiffe://td/ns/a/sa/x", "spiffe://td/ns/a/sa/y", "spiffe://other/z"
GET = Is(METHOD, OneOf(frozenset({"GET"})))
IS_X, IS_Y = (Is(IDENTITY, OneOf(frozenset({identity}))) for identity in (X, Y))
IN_A = Is(IDENTITY, AccountsOf("td", "a"))
NAMED_X = Is(MESH_NAME, OneOf(frozenset({"x.a.serviceaccount.identity.linkerd.td"})))
ATOMS: list[Predicate] = [
    *(IS_X, IS_Y, IN_A, NAMED_X, GET, ALWAYS, Not(IS_X), Is(IDENTITY, Present()), Is(IDENTITY, Suffix("x"))),
    *(Is(IDENTITY, AccountsOf("td", "b")), Is(IDENTITY, OneOf(frozenset({X, FOREIGN}))), Is(MESH_NAME, Suffix(".td"))),
]


@pytest.mark.parametrize(
    ("predicate", "cells"),
    [
        (IS_X, [IdentityCell(X)]),
        (NAMED_X, [IdentityCell(X)]),
        (IN_A, [IdentityCell(X), IdentityCell(Y), AccountsIn("td", "a")]),
        (And((IS_X, GET)), [IdentityCell(X)]),
        (And((GET, Or((IS_X, IS_Y)))), [IdentityCell(X), IdentityCell(Y)]),
        (And((Or((IS_X, IS_Y)), IS_X)), [IdentityCell(X)]),  # the shorter one
        (Or((IS_X, GET)), [IdentityCell(X), IdentityCell(Y), AccountsIn("td", "a"), AnonymousCell()]),
        (Not(IS_X), [IdentityCell(X), IdentityCell(Y), AccountsIn("td", "a"), AnonymousCell()]),
        (Or(()), []),
    ],
)
def test_a_predicate_is_filed_by_the_callers_that_it_names(predicate: Predicate, cells: list[CallerCell]) -> None:
    filed = PredicatesByCaller([predicate], CALLERS)
    every: list[CallerCell] = [IdentityCell(X), IdentityCell(Y), AccountsIn("td", "a"), AnonymousCell()]
    assert [cell for cell in every if filed.concerning(cell)] == cells


@pytest.mark.parametrize("seed", range(5))
def test_each_caller_finds_the_predicates_that_it_may_meet_in_order(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(20):
        predicates = [_draw(random) for _ in range(6)]
        filed = PredicatesByCaller(predicates, CALLERS)
        asked = [atom for predicate in predicates for atom in atoms(predicate) if isinstance(atom, Is)]
        for cell in CALLERS.cells(asked, [X, FOREIGN]):
            facts = Facts.of_caller(cell, CALLERS)
            met = [number for number, predicate in enumerate(predicates) if residual(predicate, facts) != NEVER]
            found = list(filed.concerning(cell))
            assert found == sorted(set(found))
            assert set(met) <= set(found)


def test_a_list_of_one_kind_is_returned_unchanged() -> None:
    filed = PredicatesByCaller([IS_X, GET, IN_A, IS_X], CALLERS)
    assert list(filed.concerning(IdentityCell(X))) == [0, 1, 2, 3]
    assert list(filed.concerning(IdentityCell(Y))) == [1, 2]
    assert list(filed.concerning(OtherIdentities())) == [1]
    assert list(PredicatesByCaller([IS_X], CALLERS).concerning(AnonymousCell())) == []


def _draw(random: Random, depth: int = 2) -> Predicate:
    if not depth or random.random() < 0.4:
        return random.choice(ATOMS)
    parts = tuple(_draw(random, depth - 1) for _ in range(random.randint(1, 3)))
    return And(parts) if random.random() < 0.5 else Or(parts)
