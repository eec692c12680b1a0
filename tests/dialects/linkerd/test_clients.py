"""Names, addresses and default policies allow the right clients."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from eastgate.cluster.placement import LOOPBACK
from eastgate.dialects.linkerd import authorizations
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.engine.reference import holds
from eastgate.ir import ALWAYS, NEVER
from eastgate.ir.attributes import ADDRESS, MESH_NAME
from tests.dialects.linkerd.reading import DEFAULT, WEB, call

SPIFFE = "spiffe://td/web.west.example.com"

# Written identities, names that they allow, and names that they do not allow
NAMES: list[tuple[list[str], list[str], list[str | None]]] = [
    ([WEB], [WEB], [None, "", f"x.{WEB}", WEB.upper()]),
    (["*"], [WEB, "a"], [None, SPIFFE]),
    (["*.west.example.com"], ["a.west.example.com", "a.b.west.example.com"], ["west.example.com", "awest.example.com"]),
    (["*.west.example.com"], [], [None, SPIFFE, "a.west.example.com.evil"]),
    ([SPIFFE], [SPIFFE], [f"{SPIFFE}/x", WEB, None]),
    (["*.west.example.com", WEB, SPIFFE], ["a.west.example.com", WEB, SPIFFE], ["b", None]),
    (["foo.*.x"], ["foo.*.x"], ["foo.a.x"]),  # only a `*` at the start is a wildcard
    ([], [], [WEB, None]),
]


@pytest.mark.parametrize(("written", "allowed", "others"), NAMES)
def test_names_are_exact_or_have_a_suffix_and_suffixes_are_for_dns_names_only(
    written: list[str], allowed: list[str], others: list[str | None]
) -> None:
    predicate = authorizations.with_identities(written)
    assert [name for name in (*allowed, *others) if holds(predicate, call({MESH_NAME: name}))] == allowed


def test_nobody_is_named_by_no_identity_and_everywhere_asks_nothing() -> None:
    assert authorizations.with_identities([]) == NEVER
    assert authorizations.in_networks((ip_network("0.0.0.0/0"), ip_network("::/0"))) == ALWAYS
    assert authorizations.in_networks((ip_network("0.0.0.0/0"),)) != ALWAYS


@pytest.mark.parametrize(
    ("address", "inside", "outside"),
    [
        ("10.1.2.3", True, True),
        ("10.9.0.1", True, False),
        ("11.0.0.1", False, False),
        ("fd00::1", False, False),
        ("::ffff:10.1.2.3", True, True),
        (None, False, False),
    ],
)
def test_a_client_is_in_a_network_and_in_none_of_its_exceptions(
    address: str | None, inside: bool, outside: bool
) -> None:
    network, exceptions = ip_network("10.0.0.0/8"), (ip_network("10.9.0.0/16"),)
    request = call({ADDRESS: address})
    assert holds(authorizations.in_networks((network,)), request) is inside
    assert holds(authorizations.in_network_except(network, ()), request) is inside
    assert holds(authorizations.in_network_except(network, exceptions), request) is outside


INSIDE, OUTSIDE = "10.1.2.3", "8.8.8.8"
# A policy; whether it allows a name inside, an anonymous caller inside, a name outside, an anonymous caller outside
POLICIES = [
    (InboundPolicy.ALL_UNAUTHENTICATED, (True, True, True, True)),
    (InboundPolicy.ALL_AUTHENTICATED, (True, False, True, False)),
    (InboundPolicy.CLUSTER_UNAUTHENTICATED, (True, True, False, False)),
    (InboundPolicy.CLUSTER_AUTHENTICATED, (True, False, False, False)),
    (InboundPolicy.AUDIT, (True, True, True, True)),
]


@pytest.mark.parametrize(("policy", "expected"), POLICIES)
def test_a_default_policy_looks_at_the_name_the_network_or_both(
    policy: InboundPolicy, expected: tuple[bool, ...]
) -> None:
    predicate = authorizations.default_client(policy, authorizations.cluster_networks(DEFAULT))
    assert predicate is not None
    requests = [call({MESH_NAME: name, ADDRESS: address}) for address in (INSIDE, OUTSIDE) for name in (WEB, None)]
    assert tuple(holds(predicate, request) for request in requests) == expected


def test_deny_lets_in_nobody_and_every_policy_has_its_clients() -> None:
    assert authorizations.default_client(InboundPolicy.DENY, ()) is None
    assert {policy for policy, _ in POLICIES} | {InboundPolicy.DENY} == set(InboundPolicy)


def test_the_networks_of_the_cluster_are_a_setting() -> None:
    predicate = authorizations.default_client(InboundPolicy.CLUSTER_UNAUTHENTICATED, (ip_network("8.0.0.0/8"),))
    assert predicate is not None
    assert holds(predicate, call({ADDRESS: OUTSIDE}))
    assert not holds(predicate, call({ADDRESS: INSIDE}))


@pytest.mark.parametrize(("address", "local"), [("127.0.0.1", True), ("::1", True), ("127.0.0.2", False)])
def test_localhost_is_two_addresses(address: str, local: bool) -> None:
    assert holds(authorizations.in_networks(LOOPBACK), call({ADDRESS: address})) is local
