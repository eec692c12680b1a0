"""Who may be calling: names of Linkerd and SPIFFE IDs, and the cells into which callers fall."""

from __future__ import annotations

import pytest

from eastgate import Settings
from eastgate.policy import ALWAYS, NEVER, AccountsOf, Is, OneOf, Predicate, Prefix, Present, Suffix
from eastgate.policy.attributes import IDENTITY, MESH_NAME
from eastgate.targets.envoy.callers import AccountOf, Caller, Known, Naming, Nobody, OtherAccount, Stranger

TAIL = "serviceaccount.identity.linkerd.td"
NAMING = Naming(Settings.from_mapping({"trustDomain": "td"}))
A, B = AccountOf("td", "a"), AccountOf("td", "b")
OTHER = OtherAccount("td")


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
    assert NAMING.mesh_name(identity) == name
    assert NAMING.identity(name) == identity


@pytest.mark.parametrize(
    "name", ["spiffe://td/ns/a/sa/x", "web.example.com", TAIL, f"x.{TAIL}", f".{TAIL}", "x.a.serviceaccount.identity"]
)
def test_nobody_has_a_name_that_is_no_account_of_the_trust_domain(name: str) -> None:
    assert NAMING.identity(name) is None


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
        (_named(f".a.{TAIL}"), Known("spiffe://td/ns/a/sa/x"), ALWAYS),
        (_named(f".x.a.{TAIL}"), Known("spiffe://td/ns/a/sa/y.x"), ALWAYS),
        (_named(f".x.a.{TAIL}"), Known("spiffe://td/ns/a/sa/x"), NEVER),
        (_named(f".a.{TAIL}"), Nobody(), NEVER),
        (Is(MESH_NAME, Prefix("spiffe://")), Stranger(), ALWAYS),
        (Is(MESH_NAME, Prefix("spiffe://")), A, NEVER),
        (Is(MESH_NAME, Present()), Nobody(), NEVER),
        (Is(MESH_NAME, Present()), Stranger(), ALWAYS),
        (Is(IDENTITY, AccountsOf("td", "a")), A, ALWAYS),
        (Is(IDENTITY, AccountsOf("td", "a")), Stranger(), NEVER),
        (Is(IDENTITY, AccountsOf("td", "a")), Known("spiffe://td/ns/a/sa/x/deeper"), NEVER),
        (Is(IDENTITY, OneOf(frozenset({"spiffe://td/x"}))), Stranger(), NEVER),
    ],
    ids=str,
)
def test_what_an_atom_says_of_all_callers_of_a_cell(atom: Is, caller: Caller, settled: Predicate) -> None:
    assert NAMING.settle(atom, caller) == settled


def test_whoever_is_named_and_whoever_is_known_has_a_cell() -> None:
    asked = [
        Is(IDENTITY, OneOf(frozenset({"spiffe://evil/x"}))),
        Is(IDENTITY, AccountsOf("td", "a")),
        Is(MESH_NAME, OneOf(frozenset({f"x.b.{TAIL}", "web.example.com"}))),
        _named(f".b.{TAIL}"),
        _named(".example.com"),
    ]
    assert NAMING.cells(asked, ["spiffe://td/ns/a/sa/x"]) == [
        Known("spiffe://evil/x"),
        Known("spiffe://td/ns/a/sa/x"),
        Known("spiffe://td/ns/b/sa/x"),
        A,
        B,
        OTHER,
        Stranger(),
        Nobody(),
    ]


@pytest.mark.parametrize(
    ("identity", "cell"),
    [
        (None, Nobody()),
        ("spiffe://td/ns/a/sa/x", Known("spiffe://td/ns/a/sa/x")),
        ("spiffe://td/ns/a/sa/y", A),
        ("spiffe://td/ns/b/sa/x", OTHER),
        ("spiffe://td/ns/a/sa/y/deeper", Stranger()),
        ("spiffe://evil/ns/a/sa/x", Stranger()),
        ("spiffe://td/ns/a/sa/y,spiffe://td/ns/a/sa/z", Stranger()),
    ],
)
def test_a_caller_is_in_the_narrowest_cell(identity: str | None, cell: Caller) -> None:
    cells: list[Caller] = [Known("spiffe://td/ns/a/sa/x"), A, OTHER, Stranger(), Nobody()]
    assert NAMING.by_caller(cells, dict.fromkeys(cells, "")).cell(identity) == cell
