"""Creates certificates, valid and invalid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.reading.jwt.mint import NOW

CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER = ExtendedKeyUsageOID.SERVER_AUTH


@dataclass(frozen=True)
class Holder:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()


def issued(
    name: str,
    by: Holder | None = None,
    *,
    authority: bool = False,
    usages: Iterable[x509.ObjectIdentifier] = (),
    begins: int = -60,
    ends: int = 3600,
    critical: str | None = None,
) -> Holder:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.fromtimestamp(NOW, UTC)
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Shop"),
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "Orders"),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(seconds=begins))
        .not_valid_after(now + timedelta(seconds=ends))
        .add_extension(x509.BasicConstraints(authority, None), True)
    )
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(list(usages)), False)
    if critical:
        unknown = x509.UnrecognizedExtension(x509.ObjectIdentifier(critical), b"\x05\x00")
        builder = builder.add_extension(unknown, True)
    return Holder(builder.sign(by.key if by else key, hashes.SHA256()), key)


@cache
def authority(name: str = "authority") -> Holder:
    return issued(name, authority=True)
