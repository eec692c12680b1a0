"""Certificates that no client should have, and some valid ones, all signed by the CA of the mesh."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from eastgate.control.identity.certificates import key_pem
from tests.differential.asking import TRUST_DOMAIN
from tests.faults.certificates import Forge

__all__ = ["CLIENT", "SERVER", "CertificateTry", "Leaf", "account", "certificate_tries", "pem"]


def account(name: str) -> str:
    """Return the SPIFFE ID of an account in the namespace of the placements."""
    return f"spiffe://{TRUST_DOMAIN}/ns/a/sa/{name}"


ALICE = account("alice")
CLIENT, SERVER, EMAIL = (
    ExtendedKeyUsageOID.CLIENT_AUTH,
    ExtendedKeyUsageOID.SERVER_AUTH,
    ExtendedKeyUsageOID.EMAIL_PROTECTION,
)
_OTHERS = [ExtendedKeyUsageOID.CODE_SIGNING, ExtendedKeyUsageOID.TIME_STAMPING, ExtendedKeyUsageOID.OCSP_SIGNING, EMAIL]


@dataclass(frozen=True)
class CertificateTry:
    """A certificate chain with its key, and whether a proxy accepts it as alice's."""

    name: str
    chain_and_key: tuple[str, str]
    alice: bool
    stranger: bool = False  # it has another valid name


@dataclass
class Leaf:
    """The fields of a certificate, all with defaults."""

    uris: Sequence[str] = (ALICE,)
    purposes: Sequence[x509.ObjectIdentifier] | None = (SERVER, CLIENT)
    critical: bool = False
    ca: bool | None = False
    usage: frozenset[str] | None = frozenset({"digital_signature"})
    begins: timedelta = timedelta(minutes=-5)
    ends: timedelta = timedelta(hours=12)
    more: Sequence[x509.ExtensionType] = ()
    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    common_name: str = "forged"

    def signed(self, issuer: x509.Name, signer: Any) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.common_name)]))
            .issuer_name(issuer)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + self.begins)
            .not_valid_after(now + self.ends)
        )
        if self.ca is not None:
            builder = builder.add_extension(x509.BasicConstraints(ca=self.ca, path_length=None), critical=True)
        if self.usage is not None:
            builder = builder.add_extension(_usage(self.usage), critical=True)
        if self.purposes is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage(list(self.purposes)), critical=self.critical)
        if self.uris:
            names = [x509.UniformResourceIdentifier(uri) for uri in self.uris]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        for extension in self.more:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(signer, hashes.SHA256())


_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _usage(allowed: frozenset[str]) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name in allowed for name in _USAGES})


def certificate_tries(forge: Forge) -> Iterator[CertificateTry]:
    """Yield all tries, signed by this CA unless stated otherwise."""
    yield from _of_purposes(forge)
    for name, leaf, alice in (
        ("no usage", Leaf(usage=None), False),
        ("a usage without signatures", Leaf(usage=frozenset({"key_encipherment"})), False),
        ("may sign certificates", Leaf(usage=frozenset({"digital_signature", "key_cert_sign"})), False),
        ("may sign lists", Leaf(usage=frozenset({"digital_signature", "crl_sign"})), False),
        ("an authority", Leaf(ca=True, usage=frozenset({"digital_signature", "key_cert_sign"})), False),
        ("an authority that may sign nothing", Leaf(ca=True), False),
        ("no constraints", Leaf(ca=None), True),
        ("expired", Leaf(ends=timedelta(seconds=-5)), False),
        ("not valid yet", Leaf(begins=timedelta(hours=1), ends=timedelta(hours=2)), False),
        ("without a URI", Leaf(uris=()), False),
        ("two URIs", Leaf(uris=(ALICE, account("bob"))), False),
        ("two URIs, the right one last", Leaf(uris=(account("bob"), ALICE)), False),
        ("the same URI twice", Leaf(uris=(ALICE, ALICE)), False),
        ("the scheme in capitals", Leaf(uris=(ALICE.replace("spiffe", "SPIFFE"),)), False),
        ("the domain in capitals", Leaf(uris=(ALICE.replace(TRUST_DOMAIN, TRUST_DOMAIN.upper()),)), False),
        ("a wildcard", Leaf(uris=(account("*"),)), False),
        ("dots", Leaf(uris=(account("x/../alice"),)), False),
        ("percent", Leaf(uris=(account("%61lice"),)), False),
        ("a slash more", Leaf(uris=(f"{ALICE}/",)), False),
        ("a tilde", Leaf(uris=(account("alice~"),)), False),
        ("another domain", Leaf(uris=("spiffe://evil.example/ns/a/sa/alice",)), False),
        ("a name in the subject", Leaf(uris=(), common_name=ALICE), False),
        ("a small RSA key", Leaf(key=rsa.generate_private_key(65537, 1024)), False),  # noqa: S505 - tried
        ("an RSA key of 2,047 bits", Leaf(key=rsa.generate_private_key(65537, 2047)), False),  # noqa: S505 - tried
        ("an RSA key of 1,944 bits", Leaf(key=rsa.generate_private_key(65537, 1944)), False),  # noqa: S505 - tried
        ("an RSA key", Leaf(key=rsa.generate_private_key(65537, 2048)), True),
    ):
        yield CertificateTry(name, _of(forge, leaf), alice)
    for size in (2048, 2049):
        named = account("x" * (size - len(account(""))))
        yield CertificateTry(f"a name of {size} bytes", _of(forge, Leaf(uris=(named,))), False, size == 2048)
    leaf = Leaf()
    yield CertificateTry(
        "signed with SHA-1", (_with_sha1(forge, leaf) + forge.state.intermediate.pem, key_pem(leaf.key)), False
    )
    yield from _of_chains(forge)


def _of_purposes(forge: Forge) -> Iterator[CertificateTry]:
    made: list[tuple[str, Sequence[x509.ObjectIdentifier] | None, bool]] = [
        ("servers and clients", (SERVER, CLIENT), True),
        ("clients and servers", (CLIENT, SERVER), True),
        ("clients", (CLIENT,), True),
        ("clients and mail", (CLIENT, EMAIL), True),
        ("anything that is not said", None, True),
        ("servers", (SERVER,), False),
        ("servers and mail", (SERVER, EMAIL), False),
        ("anything that is said", (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,), False),
        ("servers, and what ends like clients", (SERVER, x509.ObjectIdentifier("1.3.6.1.5.5.7.4.2")), False),
        ("many without clients", (SERVER, *_OTHERS), False),
        *((f"{one._name}", (one,), False) for one in _OTHERS),
    ]
    for name, purposes, alice in made:
        for critical in (False, True) if purposes is not None else (False,):
            for shift in range(3):  # at every alignment in base64
                leaf = Leaf(purposes=purposes, critical=critical, common_name="x" * (1 + shift))
                label = f"for {name}{', critical' if critical else ''}, moved by {shift}"
                yield CertificateTry(label, _of(forge, leaf), alice)
    # The texts for client authentication, in a name
    planted = x509.ExtendedKeyUsage([CLIENT]).public_bytes().decode("latin-1")
    leaf = Leaf(purposes=(SERVER,), common_name=f"\x06\x03\x55\x1d\x25\x04\x0c{planted}"[:64])
    yield CertificateTry("for servers, named like one for clients", _of(forge, leaf), False)


def _of_chains(forge: Forge) -> Iterator[CertificateTry]:
    """Yield leaf certificates below one that may not sign."""
    signer = forge.state.intermediate
    bob = Leaf(uris=(account("bob"),))
    between = bob.signed(signer.certificate.subject, signer.key)
    leaf = Leaf()
    below = leaf.signed(between.subject, bob.key)
    yield CertificateTry("signed by a leaf", (pem(below) + pem(between) + signer.pem, key_pem(leaf.key)), False)
    for name, constraints in {
        "of names elsewhere": x509.NameConstraints([x509.UniformResourceIdentifier("evil.example")], None),
        "of this name forbidden": x509.NameConstraints(None, [x509.UniformResourceIdentifier(TRUST_DOMAIN)]),
    }.items():
        narrow = Leaf(
            uris=(), purposes=None, ca=True, usage=frozenset({"key_cert_sign"}), more=(constraints,), common_name=name
        )
        authority = narrow.signed(signer.certificate.subject, signer.key)
        leaf = Leaf()
        made = leaf.signed(authority.subject, narrow.key)
        chain = pem(made) + pem(authority) + signer.pem
        yield CertificateTry(f"below an authority {name}", (chain, key_pem(leaf.key)), False)
    leaf = Leaf(more=(x509.IssuerAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),))
    own = leaf.signed(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "forged")]), leaf.key)
    yield CertificateTry("signed by itself", (pem(own), key_pem(leaf.key)), False)
    with_root = _of(forge, Leaf(key=leaf.key))
    yield CertificateTry("the right one behind another", (pem(own) + with_root[0], key_pem(leaf.key)), False)


_SHA256, _SHA1 = bytes.fromhex("300a06082a8648ce3d040302"), bytes.fromhex("300906072a8648ce3d0401")  # with ECDSA


def _with_sha1(forge: Forge, leaf: Leaf) -> str:
    """Sign with SHA-1. No library supports that any more, so this changes the DER of the certificate."""
    signer = forge.state.intermediate
    assert isinstance(signer.key, ec.EllipticCurvePrivateKey)
    usual = leaf.signed(signer.certificate.subject, signer.key).tbs_certificate_bytes
    header = 2 + (usual[1] & 0x7F)  # its length takes several bytes
    signed = _der(0x30, usual[header:].replace(_SHA256, _SHA1, 1))
    signature = signer.key.sign(signed, ec.ECDSA(hashes.SHA1()))  # noqa: S303 - a weak one is what is tried
    made = _der(0x30, signed + _SHA1 + _der(0x03, b"\0" + signature))
    return f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(made).decode()}-----END CERTIFICATE-----\n"


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else b"\x82" + size.to_bytes(2)
    return bytes([tag]) + length + content


def _of(forge: Forge, leaf: Leaf) -> tuple[str, str]:
    signer = forge.state.intermediate
    return pem(leaf.signed(signer.certificate.subject, signer.key)) + signer.pem, key_pem(leaf.key)


def pem(certificate: x509.Certificate) -> str:
    """Return a certificate in PEM."""
    return certificate.public_bytes(Encoding.PEM).decode()
