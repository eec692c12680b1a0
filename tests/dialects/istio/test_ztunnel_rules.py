"""Rules at ztunnel, in upstream's own cases (testdata/deny-groups, allow-groups, authorization_test.go)."""

from __future__ import annotations

import pytest

from eastgate.dialects.istio.written import IstioRule
from eastgate.dialects.istio.ztunnel import lower_rule
from eastgate.ir import ALWAYS, NEVER
from eastgate.ir.attributes import ADDRESS, DESTINATION_ADDRESS, IDENTITY, PORT
from tests.dialects.istio.planes_building import holds, rule

A = "spiffe://cluster.local/ns/a/sa/x"


def matches(lowered: IstioRule, identity: str | None, *, denies: bool = True, port: int = 80) -> bool:
    values = {IDENTITY: identity, PORT: port, ADDRESS: "10.0.0.1", DESTINATION_ADDRESS: "10.1.0.1"}
    return holds(lower_rule(lowered, "app", denies=denies).when, values)


NOTHING = [
    rule(to=[{"paths": ["/admin"]}]),
    rule({"requestPrincipals": ["*"]}),
    rule({"remoteIpBlocks": ["0.0.0.0/0"]}),
    rule({"namespaces": ["a"]}, to=[{"methods": ["GET"]}]),
    rule({"namespaces": ["a"]}, when={"connection.sni": ["x"]}),
    rule({"namespaces": ["a"]}, when={"source.serviceAccount": ["a/x"]}),
    rule({"namespaces": ["a"]}, when={"source.trustDomain": ["cluster.local"]}),
    rule(when={"request.headers[x]": ["y"]}),
    rule({"trustDomains": ["cluster.local"]}),
]


@pytest.mark.parametrize("written", NOTHING, ids=range(len(NOTHING)))
def test_a_rule_with_an_empty_clause_denies_nothing(written: IstioRule) -> None:
    assert lower_rule(written, "app", denies=True).when == NEVER


@pytest.mark.parametrize(
    "written",
    [
        rule({"principals": ["cluster.local/ns/a/sa/x"], "requestPrincipals": ["q"]}, to=[{"ports": ["80"]}]),
        rule({"namespaces": ["a"]}, to=[{"ports": ["80"], "methods": ["GET"]}]),
        rule({"namespaces": ["a"]}, to=[{"methods": ["GET"]}, {"ports": ["80"]}]),
        rule({"trustDomains": ["other"], "namespaces": ["a"]}),
    ],
    ids=["principals", "methods", "one operation", "trust domains"],
)
def test_the_rest_of_a_deny_rule_is_wider(written: IstioRule) -> None:
    assert matches(written, A)


def test_an_allow_rule_with_http_is_left_out() -> None:
    mixed = rule({"namespaces": ["a"]}, to=[{"methods": ["GET"]}, {"ports": ["80"]}])
    lowered = lower_rule(mixed, "app", denies=False)
    assert (lowered.when, lowered.dropped) == (NEVER, ("methods",))


def test_trust_domains_are_dropped_from_an_allow_rule() -> None:
    written = rule({"trustDomains": ["other"], "namespaces": ["a"]})
    assert matches(written, A, denies=False)
    assert lower_rule(written, "app", denies=False).dropped == ("trustDomains",)


def test_a_rule_without_anything_matches_everything() -> None:
    assert lower_rule(rule(), "app", denies=False).when == ALWAYS


MATCHES = [
    ({"principals": ["*"]}, True),
    ({"principals": ["cluster.local/ns/a/sa/x"]}, True),
    ({"principals": ["cluster.local/ns/a/*"]}, True),
    ({"principals": ["*/sa/x"]}, True),
    ({"principals": ["*/cluster.local/ns/a/sa/x"]}, False),
    ({"principals": ["cluster.local/*/x"]}, False),
    ({"principals": ["spiffe://cluster.local/ns/a/sa/x"]}, False),
    ({"notPrincipals": ["cluster.local/ns/b/*"]}, True),
    ({"notPrincipals": ["*"]}, False),
    ({"namespaces": ["a"]}, True),
    ({"namespaces": ["*"]}, True),
    ({"namespaces": ["a*"]}, True),
    ({"namespaces": ["*b"]}, False),
    ({"notNamespaces": ["a"]}, False),
    ({"serviceAccounts": ["a/x"]}, True),
    ({"serviceAccounts": ["x"]}, False),
    ({"notServiceAccounts": ["x"]}, True),
    ({"ipBlocks": ["10.0.0.0/8"]}, True),
    ({"ipBlocks": ["10.0.0.2"]}, False),
    ({"notIpBlocks": ["10.0.0.7/24"]}, False),
]


@pytest.mark.parametrize(("source", "expected"), MATCHES, ids=[str(case[0]) for case in MATCHES])
def test_sources_match(source: dict[str, list[str]], expected: bool) -> None:
    assert matches(rule(source), A, denies=False) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"principals": ["*"]}, False),
        ({"notPrincipals": ["*"]}, True),
        ({"notNamespaces": ["a"]}, True),
        ({"namespaces": ["*"]}, False),
        ({"notServiceAccounts": ["a/x"]}, True),
    ],
    ids=str,
)
def test_plaintext_has_no_identity(source: dict[str, list[str]], expected: bool) -> None:
    assert matches(rule(source), None) is expected


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({"source.namespace": ["a"]}, True),
        ({"!source.namespace": ["a"]}, False),
        ({"source.ip": ["10.0.0.0/8"]}, True),
        ({"destination.ip": ["10.1.0.0/16"]}, True),
        ({"destination.port": ["80", "81"]}, True),
        ({"!destination.port": ["80"]}, False),
        ({"source.principal": ["*/sa/x"], "destination.port": ["81"]}, False),
    ],
    ids=str,
)
def test_conditions_match(when: dict[str, list[str]], expected: bool) -> None:
    assert matches(rule(when=when), A) is expected
