"""Creates the certificates of the embedded CA: root, intermediate and leaf, as the X.509-SVID standard requires.

The certificates have no name constraints: the verifier of `cryptography` refuses every chain with a constraint on URIs.
Each trust domain has its own bundle instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from secrets import token_hex
from typing import TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from eastgate.basics.records import dataclass

# The errors of identities: one type for each kind, with a message that says what to do.


class IdentityError(Exception):
    """An error of an identity, a certificate or a key. Messages never contain any part of a key."""


class BadIdentityError(IdentityError):
    """The CA cannot issue the requested identity."""


class BadBundleError(IdentityError):
    """A text is not a list of root certificates of a trust domain."""


class UnknownTrustDomainError(IdentityError):
    """There is no bundle for this trust domain, so its certificates cannot be verified."""

    def __init__(self, trust_domain: str, trust_domains: tuple[str, ...]) -> None:
        listed = ", ".join(trust_domains)
        super().__init__(
            f"there are no root certificates for the trust domain {trust_domain!r}, only for {listed}; "
            f"federate with it by adding its bundle"
        )
        self.trust_domain = trust_domain


class SvidExpiredError(IdentityError):
    """The only certificate of an identity has expired. An expired certificate is never used."""


class IdentityNotGrantedError(IdentityError):
    """The SPIRE agent does not give this process the identity that it needs."""


class MissingDnsNameError(IdentityError):
    """The SPIRE agent gives the identity without a DNS name that its certificate must have."""


class NoWorkloadApiError(IdentityError):
    """The SPIRE agent has not answered."""


class UnsafeFileError(IdentityError):
    """Other users can read or change a file or folder with keys."""


class StoredCaError(IdentityError):
    """A stored CA cannot be read back."""


class NoMemoryFileError(IdentityError):
    """This system has no files in memory, so a key would have to be written to a disk."""


class PeerError(IdentityError):
    """The peer of a connection did not prove the identity that it must have."""


SigningKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey  # Eastgate itself only makes keys on P-256

_ORGANIZATION = "Eastgate"


@dataclass(frozen=True, slots=True)
class Period:
    """The time in which a certificate is valid."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Signer:
    """A certificate that may sign others, and its key."""

    certificate: x509.Certificate
    key: SigningKey = field(repr=False)

    @property
    def end(self) -> datetime:
        """Return the expiry of the certificate, and of everything that it signed."""
        return self.certificate.not_valid_after_utc

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()


@dataclass(frozen=True, slots=True)
class _Issuer:
    name: x509.Name
    key: SigningKey = field(repr=False)
    key_id: x509.AuthorityKeyIdentifier

    @classmethod
    def of(cls, signer: Signer) -> _Issuer:
        """Return a signer as an issuer, with the key id in its certificate: programs compute key ids differently."""
        certificate = signer.certificate
        try:
            subject_key = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
            key_id = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject_key)
        except x509.ExtensionNotFound:
            key_id = _key_id(signer.key)
        return cls(certificate.subject, signer.key, key_id)


def _key_id(key: SigningKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def new_key() -> ec.EllipticCurvePrivateKey:
    """Create a key on P-256, which every TLS library supports."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: SigningKey) -> str:
    """Return the key as PEM, not encrypted."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def new_root(trust_domain: str, period: Period) -> Signer:
    """Create a root, which signs itself and intermediates."""
    key = new_key()
    itself = _Issuer(_name("root"), key, _key_id(key))
    return _sign_ca(trust_domain, itself, by=itself, path_length=1, period=period)


def new_intermediate(trust_domain: str, root: Signer, period: Period) -> Signer:
    """Create an intermediate, which signs leaves only."""
    key = new_key()
    itself = _Issuer(_name("intermediate"), key, _key_id(key))
    return _sign_ca(trust_domain, itself, by=_Issuer.of(root), path_length=0, period=period)


def new_leaf(
    identity: str, dns_names: Sequence[str], key: ec.EllipticCurvePublicKey, by: Signer, period: Period
) -> x509.Certificate:
    """Sign the certificate of a workload: one SPIFFE ID, for clients and servers, and not for signing."""
    names = [x509.UniformResourceIdentifier(identity), *(x509.DNSName(name) for name in dns_names)]
    both_ends = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANIZATION)])
    return (
        _start_builder(subject, key, _Issuer.of(by), period)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(both_ends, critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(by.key, hashes.SHA256())
    )


def _sign_ca(trust_domain: str, itself: _Issuer, by: _Issuer, path_length: int, period: Period) -> Signer:
    domain = x509.UniformResourceIdentifier(f"spiffe://{trust_domain}")
    certificate = (
        _start_builder(itself.name, itself.key.public_key(), by, period)
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.SubjectAlternativeName([domain]), critical=False)
        .sign(by.key, hashes.SHA256())
    )
    return Signer(certificate, itself.key)


def _start_builder(
    subject: x509.Name, key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey, by: _Issuer, period: Period
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(period.start)
        .not_valid_after(period.end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(by.key_id, critical=False)
    )


def _name(kind: str) -> x509.Name:
    """Return a unique name, so that no verifier confuses an old CA certificate with its successor."""
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, f"{kind} {token_hex(8)}"),
        ]
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
