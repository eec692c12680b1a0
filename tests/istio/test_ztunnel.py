"""The test double of ztunnel follows each sentence of ztunnel's rbac.rs."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.istio.ztunnel import Connection, Verdict, decide, matches

CALLER = Connection("10.0.0.1", "10.0.0.2", 8080, "spiffe://cluster.local/ns/shop/sa/web")
NOBODY = Connection("10.0.0.1", "10.0.0.2", 8080, None)


def policy(*rules: list[list[dict[str, Any]]], action: str = "ALLOW", **more: Any) -> dict[str, Any]:
    groups = [{"rules": [{"matches": clause} for clause in rule]} for rule in rules]
    return {"name": "p", "namespace": "shop", "scope": "NAMESPACE", "action": action, "groups": groups, **more}


def network(address: bytes, length: int) -> dict[str, Any]:
    return {"address": base64.b64encode(address).decode(), "length": length}


@pytest.mark.parametrize(
    ("match", "of_caller", "of_nobody"),
    [
        ({"principals": [{"exact": "cluster.local/ns/shop/sa/web"}]}, True, False),
        ({"principals": [{"prefix": "cluster.local/"}]}, True, False),
        ({"principals": [{"suffix": "/web"}]}, True, False),
        ({"principals": [{"presence": {}}]}, True, False),
        ({"not_principals": [{"presence": {}}]}, False, True),
        ({"namespaces": [{"exact": "shop"}]}, True, False),
        ({"namespaces": [{"presence": {}}]}, True, False),
        ({"not_namespaces": [{"exact": "shop"}]}, False, True),
        ({"service_accounts": [{"namespace": "shop", "serviceAccount": "web"}]}, True, False),
        ({"service_accounts": [{"namespace": "shop", "serviceAccount": "we"}]}, False, False),
        ({"source_ips": [network(b"\x0a\0\0\0", 24)]}, True, True),
        ({"source_ips": [network(b"\x0a\0\0\2", 32)]}, False, False),
        ({"destination_ips": [network(b"\x0a\0\0\2", 32)]}, True, True),
        ({"destination_ports": [80, 8080]}, True, True),
        ({"not_destination_ports": [8080]}, False, False),
        ({"destination_ports": [8080], "principals": [{"exact": "x"}]}, False, False),
        ({}, False, False),
    ],
)
def test_fields_of_a_match(match: dict[str, Any], of_caller: bool, of_nobody: bool) -> None:
    one = policy([[match]])
    assert (matches(one, CALLER), matches(one, NOBODY)) == (of_caller, of_nobody)


YES: dict[str, Any] = {"destination_ports": [8080]}
NO: dict[str, Any] = {"destination_ports": [1]}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([[]], True),
        ([[[]]], True),
        ([[[{}]]], False),
        ([[[{}, YES]]], True),
        ([[[YES], [NO]]], False),
        ([[[YES], [NO, YES]]], True),
        ([[[NO]], [[YES]]], True),
    ],
)
def test_rules_clauses_and_matches(rules: list[Any], expected: bool) -> None:
    assert matches(policy(*rules), CALLER) is expected


def test_denials_go_first_and_allowing_policies_close_the_rest() -> None:
    allow, deny, never = policy([[YES]]), policy([[YES]], action="DENY", name="d"), policy([[NO]])
    assert decide([], "shop", (), CALLER) == Verdict(True, ())
    assert decide([allow], "shop", (), CALLER) == Verdict(True, ("shop/p",))
    assert decide([allow, deny], "shop", (), CALLER) == Verdict(False, ("shop/d",))
    assert decide([never], "shop", (), CALLER) == Verdict(False, ())


def test_where_policies_apply() -> None:
    deny = policy([[YES]], action="DENY")
    assert decide([deny], "other", (), CALLER).allowed
    assert not decide([{**deny, "scope": "GLOBAL"}], "other", (), CALLER).allowed
    selecting = {**deny, "scope": "WORKLOAD_SELECTOR"}
    assert decide([selecting], "shop", (), CALLER).allowed
    assert not decide([selecting], "shop", ("shop/p",), CALLER).allowed
    assert decide([{**deny, "dry_run": True}], "shop", (), CALLER).allowed
