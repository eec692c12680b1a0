"""Possible callers: names of Linkerd and SPIFFE IDs, and the cells of callers."""

from __future__ import annotations

import pytest

from eastgate import Settings
from eastgate.envoy.plan import ByCaller
from eastgate.ir import ALWAYS, NEVER, AccountsOf, Is, OneOf, Predicate, Prefix, Present, Suffix
from eastgate.ir.attributes import IDENTITY, MESH_NAME
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    IdentityCell,
    OtherAccounts,
    OtherIdentities,
)

TAIL = "serviceaccount.identity.linkerd.td"
CALLERS = CallerCells(Settings.from_mapping({"trustDomain": "td"}))
A, B = AccountsIn("td", "a"), AccountsIn("td", "b")
OTHER = OtherAccounts("td")


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        ("spiffe://td/ns/a/sa/x", f"x.a.{TAIL}"),
        ("spiffe://td/ns/a/sa/x.y", f"x.y.a.{TAIL}"),
        ("spiffe://td/ns/a/sa/x/deeper", "spiffe://td/ns/a/sa/x/deeper"),
        ("spiffe://evil/ns/a/sa/x", "spiffe://evil/ns/a/sa/x"),
        ("spiffe://td/workload", "spiffe://td/workload"),
    ],
)
def test_an_account_has_a_name_and_others_are_called_by_their_identity(identity: str, name: str) -> None:
    assert CALLERS.names.mesh_name(identity) == name
    assert CALLERS.names.identity(name) == identity


@pytest.mark.parametrize(
    "name", ["spiffe://td/ns/a/sa/x", "web.example.com", TAIL, f"x.{TAIL}", f".{TAIL}", "x.a.serviceaccount.identity"]
)
def test_no_caller_has_a_name_outside_of_the_accounts_of_the_trust_domain(name: str) -> None:
    assert CALLERS.names.identity(name) is None


def _named(text: str) -> Is:
    return Is(MESH_NAME, Suffix(text))


@pytest.mark.parametrize(
    ("atom", "caller", "settled"),
    [
        (_named(f".a.{TAIL}"), A, ALWAYS),
        (_named(f".a.{TAIL}"), B, NEVER),
        (_named(f".a.{TAIL}"), OTHER, NEVER),
        (_named(f".{TAIL}"), OTHER, ALWAYS),
        (_named(".td"), A, ALWAYS),
        (_named(".example.com"), A, NEVER),
        (_named(f".x.a.{TAIL}"), A, Is(IDENTITY, Suffix(".x"))),
        (_named(f".a.{TAIL}"), IdentityCell("spiffe://td/ns/a/sa/x"), ALWAYS),
        (_named(f".x.a.{TAIL}"), IdentityCell("spiffe://td/ns/a/sa/y.x"), ALWAYS),
        (_named(f".x.a.{TAIL}"), IdentityCell("spiffe://td/ns/a/sa/x"), NEVER),
        (_named(f".a.{TAIL}"), AnonymousCell(), NEVER),
        (Is(MESH_NAME, Prefix("spiffe://")), OtherIdentities(), ALWAYS),
        (Is(MESH_NAME, Prefix("spiffe://")), A, NEVER),
        (Is(MESH_NAME, Present()), AnonymousCell(), NEVER),
        (Is(MESH_NAME, Present()), OtherIdentities(), ALWAYS),
        (Is(IDENTITY, AccountsOf("td", "a")), A, ALWAYS),
        (Is(IDENTITY, AccountsOf("td", "a")), OtherIdentities(), NEVER),
        (Is(IDENTITY, AccountsOf("td", "a")), IdentityCell("spiffe://td/ns/a/sa/x/deeper"), NEVER),
        (Is(IDENTITY, OneOf(frozenset({"spiffe://td/x"}))), OtherIdentities(), NEVER),
    ],
    ids=str,
)
def test_what_an_atom_says_of_all_callers_of_a_cell(atom: Is, caller: CallerCell, settled: Predicate) -> None:
    assert CALLERS.settle(atom, caller) == settled


def test_named_and_known_callers_have_cells() -> None:
    asked = [
        Is(IDENTITY, OneOf(frozenset({"spiffe://evil/x"}))),
        Is(IDENTITY, AccountsOf("td", "a")),
        Is(MESH_NAME, OneOf(frozenset({f"x.b.{TAIL}", "web.example.com"}))),
        _named(f".b.{TAIL}"),
        _named(".example.com"),
    ]
    assert CALLERS.cells(asked, ["spiffe://td/ns/a/sa/x"]) == [
        IdentityCell("spiffe://evil/x"),
        IdentityCell("spiffe://td/ns/a/sa/x"),
        IdentityCell("spiffe://td/ns/b/sa/x"),
        A,
        B,
        OTHER,
        OtherIdentities(),
        AnonymousCell(),
    ]


@pytest.mark.parametrize(
    ("identity", "cell"),
    [
        (None, AnonymousCell()),
        ("spiffe://td/ns/a/sa/x", IdentityCell("spiffe://td/ns/a/sa/x")),
        ("spiffe://td/ns/a/sa/y", A),
        ("spiffe://td/ns/b/sa/x", OTHER),
        ("spiffe://td/ns/a/sa/y/deeper", OtherIdentities()),
        ("spiffe://evil/ns/a/sa/x", OtherIdentities()),
        ("spiffe://td/ns/a/sa/y,spiffe://td/ns/a/sa/z", OtherIdentities()),
    ],
)
def test_a_caller_is_in_the_narrowest_cell(identity: str | None, cell: CallerCell) -> None:
    cells: list[CallerCell] = [IdentityCell("spiffe://td/ns/a/sa/x"), A, OTHER, OtherIdentities(), AnonymousCell()]
    assert ByCaller.of(cells, dict.fromkeys(cells, "")).cell(identity) == cell
