"""Creates the certificates of the embedded CA, as the X.509-SVID standard wants them: root, intermediate and leaf.

No name constraints: the verifier of `cryptography` refuses every chain with one on URIs. Trust domains are kept apart
by having a bundle each.
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

# The errors of identities: one type for each kind, and a message that says what to do.


class IdentityError(Exception):
    """An error with an identity, a certificate or a key. No message repeats any part of a key."""


class BadIdentityError(IdentityError):
    """An identity was requested that this CA cannot vouch for."""


class BadBundleError(IdentityError):
    """A text that should hold the root certificates of a trust domain does not."""


class UnknownTrustDomainError(IdentityError):
    """There is no bundle for this trust domain, so nobody in it can be verified."""

    def __init__(self, trust_domain: str, trust_domains: tuple[str, ...]) -> None:
        listed = ", ".join(trust_domains)
        super().__init__(
            f"there are no root certificates for the trust domain {trust_domain!r}, only for {listed}; "
            f"federate with it by adding its bundle"
        )
        self.trust_domain = trust_domain


class SvidExpiredError(IdentityError):
    """The only certificate there is for an identity has expired, and an expired one is never handed out."""


class NotGivenError(IdentityError):
    """The SPIRE agent does not give this process the identity that it needs."""


class MissingNameError(IdentityError):
    """The SPIRE agent gives the identity, but without a DNS name that must be in its certificate."""


class NoWorkloadApiError(IdentityError):
    """The SPIRE agent has given no answer."""


class UnsafeFileError(IdentityError):
    """A file or folder with keys in it that others can read or change."""


class StoredCaError(IdentityError):
    """A stored CA cannot be read back."""


class NoMemoryFileError(IdentityError):
    """This system has no files that are only in memory, so a key would have to be written to a disk."""


class PeerError(IdentityError):
    """The other end of a connection did not prove the identity that it must have."""


SigningKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey  # of our own making are those on P-256 only

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
        """Return when it expires, and everything it signed with it."""
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
        """Return the issuer that a signer is, with the key id that its certificate says, however that was computed."""
        certificate = signer.certificate
        try:
            said = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
            key_id = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(said)
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
    """Sign the certificate of a workload: one SPIFFE ID, for clients and servers, and not to sign others with."""
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
    """Return a unique name, so that no verifier takes an old CA certificate for its successor."""
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
