"""Certificates that no CA of Eastgate would issue, signed by a CA with a key that the tests have."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from eastgate.control.identity import CaState, EmbeddedCa, Lifetimes, TrustBundles
from eastgate.control.identity.certificates import key_pem
from eastgate.local.machine.connection import Target
from tests.faults.worlds import DOMAIN

__all__ = ["Forge", "served_certificate", "tls_context"]


@dataclass(frozen=True)
class Forge:
    """A CA, with its private key."""

    authority: EmbeddedCa
    state: CaState

    @classmethod
    def of(cls, domain: str = DOMAIN, lifetimes: Lifetimes | None = None) -> Forge:
        saved: list[CaState] = []
        authority = EmbeddedCa(domain, lifetimes=lifetimes, save=saved.append)
        return cls(authority, saved[0])

    def forged(
        self,
        *uris: str,
        dns: Sequence[str] = (),
        expired: bool = False,
        self_signed: bool = False,
        for_clients: bool = True,
    ) -> tuple[str, str]:
        """Return a chain and its key: a leaf with these names, or without names."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        end = now - timedelta(seconds=5) if expired else now + timedelta(minutes=5)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "forged")])
        signer = self.state.intermediate
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if for_clients else ExtendedKeyUsageOID.SERVER_AUTH
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name if self_signed else signer.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(_signs_nothing(), critical=True)
        )
        names = [*map(x509.UniformResourceIdentifier, uris), *map(x509.DNSName, dns)]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        leaf = builder.sign(key if self_signed else signer.key, hashes.SHA256())
        chain = leaf.public_bytes(Encoding.PEM).decode() + ("" if self_signed else signer.pem)
        return chain, key_pem(key)


def _signs_nothing() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def tls_context(
    bundles: TrustBundles, chain_and_key: tuple[str, str] | None = None, *, weak: bool = False
) -> ssl.SSLContext:
    """Return the TLS context of a client with an optional certificate. `weak` lets it present a weak one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=bundles.pem(bundles.own))
    if weak:
        context.set_ciphers("ALL:@SECLEVEL=0")
    if chain_and_key is not None:
        with os.fdopen(os.memfd_create("forged"), "w") as file:
            file.write("".join(chain_and_key))
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context


async def served_certificate(target: Target, tls: ssl.SSLContext) -> x509.Certificate:
    """Return the certificate that a proxy presents."""
    reader, writer = await asyncio.open_connection(target.address, target.port, ssl=tls, server_hostname="")
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(shown)
    finally:
        writer.transport.abort()
        reader.feed_eof()
