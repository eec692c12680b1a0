"""A listener has the certificates of Secrets that it may name."""

from __future__ import annotations

import pytest

from eastgate.cluster import (
    ClientValidation,
    Gateway,
    GrantFrom,
    GrantTo,
    Listener,
    ListenerTls,
    ReferenceGrant,
    Secret,
    TlsReference,
    World,
    WorldObject,
)
from eastgate.cluster.routing.certificates import client_authorities, listener_certificates
from tests.certificates import self_signed

CHAIN, KEY = self_signed("example.com")
PAIR = {"tls.crt": CHAIN, "tls.key": KEY}
OTHER_KEY = self_signed("example.com")[1]
GRANT = ReferenceGrant(
    "certs", "g", (GrantFrom("gateway.networking.k8s.io", "Gateway", "edge"),), (GrantTo("", "Secret"),)
)


def secret(namespace: str = "edge", data: dict[str, bytes] = PAIR, type_: str = "kubernetes.io/tls") -> Secret:
    return Secret(namespace, "a", data=data, type=type_)


HERE, THERE = TlsReference("edge", "a"), TlsReference("certs", "a")
PROBLEMS: list[tuple[TlsReference, list[WorldObject], str | None]] = [
    (HERE, [secret()], None),
    (HERE, [], "secret-not-declared"),
    (HERE, [secret(type_="Opaque")], "wrong-type"),
    (HERE, [secret(data={"tls.crt": CHAIN})], "no-certificate"),
    (HERE, [secret(data={**PAIR, "tls.key": b""})], "no-certificate"),
    (HERE, [secret(data={**PAIR, "tls.crt": b"Hello world"})], "malformed"),
    (HERE, [secret(data={**PAIR, "tls.key": b"Hello world"})], "malformed"),
    (HERE, [secret(data={**PAIR, "tls.key": OTHER_KEY})], "malformed"),
    (TlsReference("edge", "a", "", "ConfigMap"), [secret()], "not-a-secret"),
    (TlsReference("edge", "a", "example.com"), [secret()], "not-a-secret"),
    (THERE, [secret("certs")], "reference-not-granted"),
    (THERE, [secret("certs"), GRANT], None),
    (THERE, [GRANT], "secret-not-declared"),
]


@pytest.mark.parametrize(("reference", "objects", "problem"), PROBLEMS, ids=range(len(PROBLEMS)))
def test_a_certificate(reference: TlsReference, objects: list[WorldObject], problem: str | None) -> None:
    listener = Listener("l", 443, "HTTPS", tls=ListenerTls(certificates=(reference,)))
    (certificate,) = listener_certificates(World.of(objects), Gateway("edge", "gw", (listener,)), listener)
    assert certificate.problem == problem
    expected = (CHAIN, KEY) if problem is None else (b"", b"")
    assert (certificate.chain, certificate.key) == expected


def test_a_listener_without_tls_has_none() -> None:
    listener = Listener("l", 80, "HTTP")
    assert listener_certificates(World(), Gateway("edge", "gw", (listener,)), listener) == ()


AUTHORITIES: list[tuple[TlsReference, list[WorldObject], str | None]] = [
    (HERE, [secret(data={"ca.crt": CHAIN})], None),
    (HERE, [secret(data={})], "no-certificate"),
    (HERE, [], "secret-not-declared"),
    (TlsReference("edge", "a", "", "ConfigMap"), [], "not-a-secret"),
    (THERE, [secret("certs", {"ca.crt": CHAIN})], "reference-not-granted"),
    (THERE, [secret("certs", {"ca.crt": CHAIN}), GRANT], None),
]


@pytest.mark.parametrize(("reference", "objects", "problem"), AUTHORITIES, ids=range(len(AUTHORITIES)))
def test_an_authority_of_clients(reference: TlsReference, objects: list[WorldObject], problem: str | None) -> None:
    tls = ListenerTls(client_validation=ClientValidation((reference,)))
    listener = Listener("l", 443, "HTTPS", tls=tls)
    (authority,) = client_authorities(World.of(objects), Gateway("edge", "gw", (listener,)), listener)
    assert authority.problem == problem
    assert authority.roots == (CHAIN if problem is None else b"")
