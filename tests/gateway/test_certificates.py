"""A listener has the certificates of Secrets that it may name."""

from __future__ import annotations

import pytest

from eastgate.cluster import (
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
from eastgate.gateway.certificates import listener_certificates

PAIR = {"tls.crt": b"certificate", "tls.key": b"key"}
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
    (HERE, [secret(data={"tls.crt": b"certificate"})], "no-certificate"),
    (HERE, [secret(data={**PAIR, "tls.key": b""})], "no-certificate"),
    (TlsReference("edge", "a", "", "ConfigMap"), [secret()], "not-a-secret"),
    (TlsReference("edge", "a", "example.com"), [secret()], "not-a-secret"),
    (THERE, [secret("certs")], "reference-not-granted"),
    (THERE, [secret("certs"), GRANT], None),
    (THERE, [GRANT], "secret-not-declared"),
]


@pytest.mark.parametrize(("reference", "objects", "problem"), PROBLEMS)
def test_a_certificate(reference: TlsReference, objects: list[WorldObject], problem: str | None) -> None:
    listener = Listener("l", 443, "HTTPS", tls=ListenerTls(certificates=(reference,)))
    (certificate,) = listener_certificates(World.of(objects), Gateway("edge", "gw", (listener,)), listener)
    assert certificate.problem == problem
    expected = (b"certificate", b"key") if problem is None else (b"", b"")
    assert (certificate.chain, certificate.key) == expected


def test_a_listener_without_tls_has_none() -> None:
    listener = Listener("l", 80, "HTTP")
    assert listener_certificates(World(), Gateway("edge", "gw", (listener,)), listener) == ()
