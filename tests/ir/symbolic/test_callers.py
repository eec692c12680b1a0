"""Evaluation of atoms for caller cells."""

from __future__ import annotations

from collections.abc import Hashable
from random import Random

import pytest

from eastgate.ir import ALWAYS, NEVER, AccountsOf, Computed, Is, Matcher, OneOf, Predicate, Prefix, Present, Suffix
from eastgate.ir.attributes import IDENTITY, MESH_NAME, METHOD, Attribute
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    IdentityCell,
    Name,
    NamesUnder,
    OtherAccounts,
    OtherIdentities,
    OtherNames,
    cells_around,
)
from eastgate.settings import Settings

TAIL = ".serviceaccount.identity.linkerd.cluster.local"
IN_SHOP = AccountsIn("cluster.local", "shop")


@pytest.mark.parametrize(
    ("matcher", "settled"),
    [
        (Present(), ALWAYS),
        (Suffix(TAIL), ALWAYS),
        (Suffix(f".shop{TAIL}"), ALWAYS),
        (Suffix(f".bank{TAIL}"), NEVER),
        (Suffix(".elsewhere.example"), NEVER),
        (OneOf(frozenset({f"web.shop{TAIL}"})), NEVER),  # this caller has its own cell
        (Prefix("spiffe://"), NEVER),
        (Prefix("web."), Is(MESH_NAME, Prefix("web."))),  # true for some callers: it stays a condition
    ],
)
def test_a_name_is_settled_for_the_other_accounts_of_a_namespace(matcher: Matcher, settled: Predicate) -> None:
    assert CallerCells(Settings()).settle(Is(MESH_NAME, matcher), IN_SHOP) == settled


CALLERS = CallerCells(Settings())
WEB = "spiffe://cluster.local/ns/shop/sa/web"
FOREIGN = "spiffe://elsewhere/ns/shop/sa/web"
GET = Is(METHOD, OneOf(frozenset({"GET"})))
OTHERS: list[CallerCell] = [OtherAccounts("cluster.local"), OtherIdentities()]


def _named(matcher: Matcher) -> Is:
    return Is(MESH_NAME, matcher)


def _one_of(*names: str) -> OneOf:
    return OneOf(frozenset(names))


@pytest.mark.parametrize(
    ("asked", "cells"),
    [
        ([GET], OTHERS),
        ([GET, Is(IDENTITY, _one_of(WEB))], [IdentityCell(WEB), *OTHERS]),
        ([_named(_one_of(f"web.shop{TAIL}")), GET], [IdentityCell(WEB), *OTHERS, OtherNames()]),
        ([_named(_one_of(FOREIGN))], [IdentityCell(FOREIGN), *OTHERS, OtherNames()]),
        (
            [Is(IDENTITY, _one_of(WEB)), _named(_one_of("db.example")), _named(Suffix(".example"))],
            [IdentityCell(WEB), *OTHERS, NamesUnder(".example"), Name("db.example"), OtherNames()],
        ),
        ([_named(Suffix(f".shop{TAIL}"))], [IN_SHOP, *OTHERS, OtherNames()]),
        ([_named(Suffix(TAIL))], [*OTHERS, NamesUnder(TAIL), OtherNames()]),  # the suffix has no namespace
        ([_named(Prefix("web."))], [*OTHERS, OtherNames()]),
    ],
)
def test_callers_with_a_name_and_no_identity_have_cells_if_rules_read_names(
    asked: list[Is], cells: list[CallerCell]
) -> None:
    assert CALLERS.cells(asked, with_names=True) == [*cells, AnonymousCell()]
    without = [cell for cell in cells if not isinstance(cell, Name | NamesUnder | OtherNames)]
    assert CALLERS.cells(asked) == [*without, AnonymousCell()]


@pytest.mark.parametrize(
    ("cell", "identity", "name"),
    [
        (IdentityCell(WEB), WEB, f"web.shop{TAIL}"),
        (IdentityCell(FOREIGN), FOREIGN, FOREIGN),
        (IN_SHOP, "spiffe://cluster.local/ns/shop/sa/_other_", f"_other_.shop{TAIL}"),
        (OTHERS[0], "spiffe://cluster.local/ns/_other_/sa/_other_", f"_other_._other_{TAIL}"),
        (OTHERS[1], "spiffe://_other_/_other_", "spiffe://_other_/_other_"),
        (Name("db.example"), None, "db.example"),
        (NamesUnder(".example"), None, "_other_.example"),
        (OtherNames(), None, "_other_"),
        (AnonymousCell(), None, None),
    ],
)
def test_one_caller_represents_a_cell(cell: CallerCell, identity: str | None, name: str | None) -> None:
    assert CALLERS.representative(cell) == (identity, name)


SCHEME, STARTS = Prefix("spiffe://"), Prefix("db.")


@pytest.mark.parametrize(
    ("cell", "attribute", "matcher", "settled"),
    [
        (Name("db.example"), MESH_NAME, Present(), ALWAYS),
        (Name("db.example"), MESH_NAME, _one_of("db.example"), ALWAYS),
        (Name("db.example"), MESH_NAME, _one_of("web.example"), NEVER),
        (Name("db.example"), MESH_NAME, Suffix(".example"), ALWAYS),
        (Name("db.example"), IDENTITY, Present(), NEVER),
        (NamesUnder(".b.example"), MESH_NAME, Suffix(".example"), ALWAYS),
        (NamesUnder(".example"), MESH_NAME, Suffix(".b.example"), NEVER),
        (NamesUnder(".example"), MESH_NAME, STARTS, _named(STARTS)),
        (NamesUnder(".example"), MESH_NAME, SCHEME, NEVER),
        (NamesUnder(".example"), MESH_NAME, _one_of("db.example"), NEVER),
        (OtherNames(), MESH_NAME, STARTS, _named(STARTS)),
        (OtherNames(), MESH_NAME, Suffix(".example"), NEVER),
        (OtherNames(), IDENTITY, SCHEME, NEVER),
        (IN_SHOP, IDENTITY, SCHEME, ALWAYS),
        (IN_SHOP, IDENTITY, Suffix("x"), Is(IDENTITY, Suffix("x"))),
        (IN_SHOP, IDENTITY, AccountsOf("cluster.local", "bank"), NEVER),
        (AccountsIn("elsewhere", "shop"), MESH_NAME, Suffix("x"), Is(IDENTITY, Suffix("x"))),
        (OTHERS[0], MESH_NAME, Suffix(f".shop{TAIL}"), NEVER),
    ],
)
def test_an_atom_is_settled_for_each_kind_of_cell(
    cell: CallerCell, attribute: Attribute, matcher: Matcher, settled: Predicate
) -> None:
    assert CALLERS.settle(Is(attribute, matcher), cell) == settled


@pytest.mark.parametrize(
    ("identity", "cells"),
    [
        (None, [AnonymousCell()]),
        (WEB, [IdentityCell(WEB), IN_SHOP, *OTHERS]),
        (FOREIGN, [IdentityCell(FOREIGN), AccountsIn("elsewhere", "shop"), OTHERS[1]]),
        ("spiffe://cluster.local/x", [IdentityCell("spiffe://cluster.local/x"), OTHERS[1]]),
    ],
)
def test_the_cells_around_a_caller_from_the_narrowest(identity: str | None, cells: list[CallerCell]) -> None:
    assert list(cells_around(identity, "cluster.local")) == cells


# Classes

ASKED: list[Is | Computed] = [
    *(Is(IDENTITY, _one_of(name)) for name in (WEB, FOREIGN)),
    Is(IDENTITY, _one_of(WEB, "spiffe://cluster.local/ns/bank/sa/web")),
    *(Is(IDENTITY, AccountsOf("cluster.local", namespace)) for namespace in ("shop", "bank")),
    *(Is(IDENTITY, matcher) for matcher in (Present(), Suffix("web"))),
    *(_named(matcher) for matcher in (Present(), Suffix(".example"), _one_of("db.example"), Suffix(f".shop{TAIL}"))),
    _named(_one_of(f"db.shop{TAIL}")),
    GET,
    Computed("it is nice", frozenset({METHOD}), lambda _: True),
]


@pytest.mark.parametrize("seed", range(5))
def test_cells_that_no_atom_distinguishes_are_one_class(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    for _ in range(10):
        asked = random.sample(ASKED, random.randint(0, 5))
        every = [atom for atom in ASKED if isinstance(atom, Is)]
        classes = CALLERS.classes(CALLERS.cells(every, with_names=True), asked)
        on_callers = [atom for atom in asked if isinstance(atom, Is) and atom is not GET]
        seen: set[Hashable] = set()
        for members in classes:
            settled = {tuple(CALLERS.settle(atom, cell) for atom in on_callers) for cell in members}
            assert len(settled) == 1
            key = members == [AnonymousCell()], *settled
            assert key not in seen
            seen.add(key)


def test_a_test_of_ones_own_may_tell_any_two_apart() -> None:
    cells = CALLERS.cells([])
    for attribute in (IDENTITY, MESH_NAME):
        nice = Computed("it is nice", frozenset({attribute, METHOD}), lambda _: True)
        assert CALLERS.classes(cells, [nice, ASKED[-1]]) == [[cell] for cell in cells]
    assert CALLERS.classes(cells, [ASKED[-1]]) == [cells[:-1], cells[-1:]]
