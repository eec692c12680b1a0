"""The parts of Linkerd's names of service accounts."""

from __future__ import annotations

import pytest

from eastgate import Settings
from eastgate.ir.symbolic.names import MeshNames, parse_account_name

TAIL = "serviceaccount.identity.linkerd.td"
NAMES = MeshNames(Settings.from_mapping({"trustDomain": "td"}))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (f"x.a.{TAIL}", ("x", "a", "linkerd.td")),
        (f"x.y.a.{TAIL}", ("x.y", "a", "linkerd.td")),
        ("x.a.serviceaccount.identity.", ("x", "a", "")),
        (f"x.{TAIL}", None),
        (f".a.{TAIL}", None),
        (f"x..{TAIL}", None),
        (TAIL, None),
        ("x.a.example", None),
        ("x", None),
    ],
)
def test_a_name_has_account_namespace_and_tail(name: str, parts: tuple[str, str, str] | None) -> None:
    assert parse_account_name(name) == parts


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (f"x.a.{TAIL}", ("x", "a")),
        (f".a.{TAIL}", ("", "a")),
        (f"a.{TAIL}", ("", "a")),
        (f".{TAIL}", ("", "")),
        ("x.a.serviceaccount.identity.linkerd.other", None),
        ("td", None),
    ],
)
def test_the_end_of_a_name_has_parts_too(name: str, parts: tuple[str, str] | None) -> None:
    assert NAMES.parts(name) == parts


@pytest.mark.parametrize(
    ("identity", "account"),
    [
        ("spiffe://td/ns/a/sa/x", ("a", "x")),
        ("spiffe://other/ns/a/sa/x", None),
        ("spiffe://td/x", None),
    ],
)
def test_an_account_is_one_of_the_trust_domain(identity: str, account: tuple[str, str] | None) -> None:
    assert NAMES.account(identity) == account
