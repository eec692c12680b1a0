"""Client certificates: the chain, the times, the purpose, and the resulting subject."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from eastgate.cluster import Secret
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.model import X509, Identity
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from eastgate.ir.attributes import UNKNOWN
from tests.dialects.kuadrant.authorino.authorities import CLIENT, SERVER, Holder, authority, issued
from tests.dialects.kuadrant.authorino.schemes import KEYS, holding, request, rule, scheme, secret, trail

GUARDED = scheme(rule("auth.identity.CommonName eq alice"), identities=[Identity("mtls", X509(KEYS))])
ROOT = secret("root", None, tls_crt=authority().pem)
MIDDLE = issued("middle", authority(), authority=True)
LEAF = issued("leaf", authority(), usages=[CLIENT])
SERVERS_ONLY = issued("servers", authority(), authority=True, usages=[SERVER])


def asked(pem: object, *secrets: Secret) -> Judgement:
    return evaluate(GUARDED, request(certificate=pem), holding(*(secrets or (ROOT,))))


def test_a_good_certificate_is_recognized_by_its_subject() -> None:
    found = asked(issued("alice", authority(), usages=[CLIENT]).pem)
    assert found.allowed
    identity = found.document["auth"]["identity"]  # type: ignore[index]
    assert (identity["CommonName"], identity["Organization"], identity["OrganizationalUnit"]) == (
        "alice",
        ["Shop"],
        ["Orders"],
    )
    assert identity["Country"] is None
    assert {"Type": [2, 5, 4, 3], "Value": "alice"} in identity["Names"]


@pytest.mark.parametrize(
    "pem",
    [
        quote(issued("alice", authority(), usages=[CLIENT]).pem, safe=""),
        issued("alice", authority()).pem,
        issued("alice", authority(), usages=[SERVER, CLIENT]).pem,
        issued("bob", usages=[CLIENT]).pem + issued("alice", authority(), usages=[CLIENT]).pem,
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        + issued("alice", authority(), usages=[CLIENT]).pem,
    ],
    ids=["as Envoy encodes it", "no purpose given", "two purposes", "behind another's", "behind nonsense"],
)
def test_these_are_good_too(pem: str) -> None:
    assert asked(pem).allowed


def broken(holder: Holder) -> str:
    lines = holder.pem.splitlines()
    lines[3] = lines[3][::-1]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "pem",
    [
        None,
        "",
        "nonsense",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        issued("alice", usages=[CLIENT]).pem,
        issued("alice", authority("stranger"), usages=[CLIENT]).pem,
        issued("alice", issued("authority", authority=True), usages=[CLIENT]).pem,
        issued("alice", authority(), usages=[SERVER]).pem,
        issued("alice", authority(), usages=[CLIENT], ends=-1).pem,
        issued("alice", authority(), usages=[CLIENT], begins=60).pem,
        issued("alice", authority(), usages=[CLIENT], critical="1.2.3.4").pem,
        issued("alice", LEAF, usages=[CLIENT]).pem + LEAF.pem,
        issued("alice", SERVERS_ONLY, usages=[CLIENT]).pem + SERVERS_ONLY.pem,
        issued("alice", MIDDLE, usages=[CLIENT]).pem,
        broken(issued("alice", authority(), usages=[CLIENT])),
        issued("alice", authority(), usages=[CLIENT]).pem + issued("bob", usages=[CLIENT]).pem,
        issued("alice", MIDDLE, usages=[CLIENT]).pem + MIDDLE.pem,
        MIDDLE.pem + issued("alice", MIDDLE, usages=[CLIENT]).pem,
        issued("alice", authority(), usages=[CLIENT]).pem * 100,
    ],
    ids=[
        *("none", "empty", "nonsense", "no certificate", "self-signed", "a stranger's", "of the authority's name"),
        *("for servers", "expired", "not yet valid", "critical extension", "signed by a leaf", "by one for servers"),
        *("chain missing", "tampered with", "another's behind it", "with its chain", "behind its chain", "endless"),
    ],
)
def test_these_are_not(pem: str | None) -> None:
    found = asked(pem)
    assert not found.allowed


def test_authorities_come_from_either_entry_and_only_the_last_of_a_bundle_counts() -> None:
    pem = issued("alice", authority(), usages=[CLIENT]).pem
    assert asked(pem, secret("root", None, ca_crt=authority().pem)).allowed
    assert asked(pem, secret("root", None, tls_crt=authority("stranger").pem + authority().pem)).allowed
    assert not asked(pem, secret("root", None, tls_crt=authority().pem + authority("stranger").pem)).allowed
    assert not asked(pem, secret("root", None, labels={}, tls_crt=authority().pem)).allowed
    assert not asked(pem, secret("root", None, tls_crt="nonsense")).allowed
    assert not asked(pem, secret("root", None, tls_crt=issued("alice", usages=[CLIENT]).pem)).allowed


def test_an_unknown_certificate_is_unknown() -> None:
    found = asked(UNKNOWN)
    assert (found.allowed, trail(found)) == (False, [("mtls", "unknown")])
    assert "the client certificate" in found.reason
