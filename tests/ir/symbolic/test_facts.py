"""Residuals of atoms under facts."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network

import pytest

from eastgate import Settings
from eastgate.ir import (
    ALWAYS,
    NEVER,
    AccountsOf,
    And,
    Computed,
    InNetwork,
    Is,
    Known,
    Not,
    OneOf,
    Or,
    Predicate,
    Present,
)
from eastgate.ir.attributes import ADDRESS, IDENTITY, MESH_NAME, METHOD, PORT, Attribute, header
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    IdentityCell,
    Name,
)
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.ir.symbolic.simplify import network

CALLERS, OTHERS = (CallerCells(Settings.from_mapping({"trustDomain": domain})) for domain in ("td", "other"))
X = "spiffe://td/ns/a/sa/x"
GET, ON_1 = Is(METHOD, OneOf(frozenset({"GET"}))), Is(PORT, OneOf(frozenset({1})))
IN_A = Is(IDENTITY, AccountsOf("td", "a"))


def _test(*attributes: Attribute, held: object = True) -> Computed:
    def holds(values: Mapping[Attribute, Known]) -> bool:
        return all(values[attribute] == held for attribute in attributes)

    return Computed("a test", frozenset(attributes), holds)


def _of(cell: IdentityCell | AccountsIn | AnonymousCell | Name) -> Facts:
    return Facts.of_caller(cell, CALLERS)


NAMED_X = "x.a.serviceaccount.identity.linkerd.td"


@pytest.mark.parametrize(
    ("facts", "atom", "settled"),
    [
        (Facts({METHOD: "GET"}), GET, ALWAYS),
        (Facts({METHOD: None}), GET, NEVER),
        (Facts({PORT: 1}), GET, GET),
        (Facts(), Is(ADDRESS, InNetwork((ip_network("127.0.0.0/8"),))), NEVER),
        (Facts({ADDRESS: "127.0.0.1"}), Is(ADDRESS, InNetwork((ip_network("127.0.0.0/8"),))), ALWAYS),
        (_of(IdentityCell(X)), IN_A, ALWAYS),
        (_of(AnonymousCell()), IN_A, NEVER),
        (_of(IdentityCell(X)), GET, GET),
        (Facts({IDENTITY: X}), IN_A, ALWAYS),
        (Facts(), IN_A, IN_A),
        (Facts(caller=IdentityCell(X)), IN_A, IN_A),  # the callers are unknown
        (Facts(callers=CALLERS), IN_A, IN_A),
    ],
)
def test_an_atom_is_settled_by_its_value_or_by_the_cell_of_the_caller(
    facts: Facts, atom: Is, settled: Predicate
) -> None:
    assert facts.settle(atom) == settled


@pytest.mark.parametrize(
    ("facts", "attributes", "held", "settled"),
    [
        (Facts({METHOD: "GET"}), [METHOD], "GET", ALWAYS),
        (Facts({METHOD: "PUT", PORT: 1}), [METHOD], "GET", NEVER),
        (Facts({METHOD: "GET"}), [METHOD, PORT], "GET", None),
        (Facts({METHOD: "GET"}, frozenset({METHOD})), [METHOD], "GET", None),  # the value represents many
        (Facts({METHOD: "GET"}, frozenset({PORT})), [METHOD], "GET", ALWAYS),
        (_of(IdentityCell(X)), [IDENTITY], X, ALWAYS),
        (_of(IdentityCell(X)), [MESH_NAME], NAMED_X, ALWAYS),
        (_of(IdentityCell(X)), [IDENTITY], "somebody else", NEVER),
        (_of(IdentityCell(X)), [METHOD], "GET", None),
        (_of(AnonymousCell()), [IDENTITY], None, ALWAYS),
        (_of(Name("web.example")), [MESH_NAME], "web.example", ALWAYS),
        (_of(AccountsIn("td", "a")), [IDENTITY], X, None),  # some callers may match
        (_of(AccountsIn("td", "a")).and_(Facts({METHOD: "GET"})), [METHOD], "GET", ALWAYS),
        (Facts(caller=IdentityCell(X)), [IDENTITY], X, None),
        (Facts(callers=CALLERS), [IDENTITY], X, None),
    ],
)
def test_a_computed_test_is_settled_if_all_its_attributes_are_known(
    facts: Facts, attributes: list[Attribute], held: object, settled: Predicate | None
) -> None:
    test = _test(*attributes, held=held)
    assert facts.settle(test) == (test if settled is None else settled)


def test_facts_of_both() -> None:
    both = Facts({METHOD: "GET"}, frozenset({METHOD})).and_(Facts({PORT: 1}, frozenset({PORT})))
    assert both == Facts({METHOD: "GET", PORT: 1}, frozenset({METHOD, PORT}))
    nobody, somebody = Facts(), Facts.of_caller(IdentityCell(X), CALLERS)
    assert nobody.and_(somebody) == somebody.and_(nobody) == somebody
    assert somebody.and_(Facts.of_caller(AnonymousCell(), OTHERS)) == somebody


def test_a_residual_is_simplified() -> None:
    facts = Facts({PORT: 1})
    assert residual(And((GET, ON_1)), facts) == GET
    assert residual(Or((GET, ON_1)), facts) == ALWAYS
    assert residual(Not(ON_1), facts) == NEVER
    assert residual(And((GET, Not(GET))), facts) == NEVER


# Networks, for other callers than the workload itself


def _within(*texts: str, attribute: Attribute = ADDRESS) -> Is:
    return Is(attribute, InNetwork(tuple(map(ip_network, texts))))


IN_HEADER = _within("0.0.0.0/0", "::/0", attribute=header("x-address"))


@pytest.mark.parametrize(
    ("atom", "settled"),
    [
        (_within("10.0.0.0/8"), _within("10.0.0.0/8")),
        (_within("127.0.0.0/8"), NEVER),
        (_within("127.1.0.0/16", "::1/128"), NEVER),
        (_within("127.1.0.0/16", "10.0.0.0/8"), _within("10.0.0.0/8")),
        (_within("126.0.0.0/7"), _within("126.0.0.0/7")),
        (_within("::/127"), _within("::/127")),
        (_within("0.0.0.0/1"), _within("0.0.0.0/1")),
        (_within("0.0.0.0/0"), _within("0.0.0.0/0")),
        (_within("::/0"), _within("::/0")),
        (_within("0.0.0.0/0", "::/0"), ALWAYS),
        (_within("0.0.0.0/0", "fd00::/8"), _within("0.0.0.0/0", "fd00::/8")),
        (_within("0.0.0.0/1", "::/0"), _within("0.0.0.0/1", "::/0")),
        (IN_HEADER, IN_HEADER),  # a header may be absent
    ],
    ids=str,
)
def test_the_workload_itself_is_no_caller(atom: Is, settled: Predicate) -> None:
    assert network(atom) == settled
    assert Facts().settle(atom) == settled


def test_presence_of_an_address_stays_a_condition() -> None:
    assert Facts().settle(Is(ADDRESS, Present())) == Is(ADDRESS, Present())
