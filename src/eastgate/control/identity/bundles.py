"""Trust bundles: the root certificates to trust, for each trust domain apart."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from eastgate.basics.records import dataclass
from eastgate.control.identity.problems import BadBundleError, UnknownTrustDomainError
from eastgate.ir.spiffe import trust_domain_problem
from eastgate.reading.jwt.strict_json import JsonProblem, read_object

Roots = tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class TrustBundles:
    """The root certificates of the own trust domain, and of those that it federates with. Make it with `of`.

    While a root is replaced a bundle holds the old one and the new one.
    """

    own: str
    roots: Mapping[str, Roots]

    @classmethod
    def of(cls, own: str, roots: Iterable[x509.Certificate]) -> TrustBundles:
        """Create the bundle of the own trust domain."""
        return cls(own, {own: _checked(own, roots)})

    def __post_init__(self) -> None:
        if not self.roots.get(self.own):
            raise BadBundleError(f"the own trust domain {self.own!r} has no root certificate")

    @property
    def trust_domains(self) -> tuple[str, ...]:
        """Return every trust domain with a bundle, the own one first."""
        return (self.own, *sorted(name for name in self.roots if name != self.own))

    def of_domain(self, trust_domain: str) -> Roots:
        """Return the roots of one trust domain. Raises UnknownTrustDomainError."""
        roots = self.roots.get(trust_domain)
        if not roots:
            raise UnknownTrustDomainError(trust_domain, self.trust_domains)
        return roots

    def pem(self, trust_domain: str) -> str:
        """Return the roots of one trust domain as PEM."""
        return "".join(root.public_bytes(Encoding.PEM).decode() for root in self.of_domain(trust_domain))

    def with_own(self, roots: Iterable[x509.Certificate]) -> TrustBundles:
        """Return a copy with other roots of the own trust domain."""
        return replace(self, roots={**self.roots, self.own: _checked(self.own, roots)})

    def federated(self, trust_domain: str, roots: Iterable[x509.Certificate]) -> TrustBundles:
        """Return a copy with these roots for another trust domain, replacing those that it had."""
        if trust_domain == self.own:
            raise BadBundleError(
                f"{trust_domain!r} is the own trust domain; a bundle from elsewhere may not replace it"
            )
        return replace(self, roots={**self.roots, trust_domain: _checked(trust_domain, roots)})

    def without(self, trust_domain: str) -> TrustBundles:
        """Return a copy that does not federate with this trust domain."""
        return replace(self, roots={name: roots for name, roots in self.roots.items() if name != trust_domain})


def read_bundle(path: str | PathLike[str]) -> Roots:
    """Read the roots in a file: PEM, or a SPIFFE bundle in JSON."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadBundleError(f"the bundle {str(path)!r} cannot be read: {error.strerror}") from error
    try:
        return roots_of_jwks(data) if data.lstrip().startswith(b"{") else roots_of_pem(data)
    except BadBundleError as error:
        raise BadBundleError(f"{str(path)!r}: {error}") from None


def roots_of_pem(pem: bytes | str) -> Roots:
    """Read the certificates in a PEM text."""
    data = pem.encode() if isinstance(pem, str) else pem
    if b"PRIVATE KEY" in data:
        raise BadBundleError("the bundle contains a private key; a bundle is public, so make a new key")
    try:
        return tuple(x509.load_pem_x509_certificates(data))
    except ValueError:
        raise BadBundleError("the bundle is not a list of PEM certificates") from None


def roots_of_jwks(jwks: bytes) -> Roots:
    """Read the X.509 authorities in a SPIFFE bundle (SPIFFE Trust Domain and Bundle, section 4).

    Keys for other uses are left out, as the standard asks.
    """
    try:
        listed = read_object(jwks).get("keys")
    except JsonProblem as problem:
        raise BadBundleError(f"the bundle {problem}") from None
    if not isinstance(listed, list):
        raise BadBundleError("the bundle has no list of keys under 'keys'")
    roots = tuple(
        _read_authority(f"keys[{index}]", key)
        for index, key in enumerate(listed)
        if isinstance(key, dict) and key.get("use") == "x509-svid"
    )
    if not roots:
        raise BadBundleError("the bundle has no key whose use is 'x509-svid'")
    return roots


def _read_authority(location: str, key: Mapping[str, object]) -> x509.Certificate:
    chain = key.get("x5c")
    if not isinstance(chain, Sequence) or len(chain) != 1 or not isinstance(chain[0], str):
        raise BadBundleError(f"{location}.x5c must hold exactly one certificate")
    try:
        return x509.load_der_x509_certificate(base64.b64decode(chain[0], validate=True))
    except (ValueError, binascii.Error):
        raise BadBundleError(f"{location}.x5c is not a certificate in base64") from None


def _checked(trust_domain: str, roots: Iterable[x509.Certificate]) -> Roots:
    problem = trust_domain_problem(trust_domain)
    if problem:
        raise BadBundleError(problem)
    distinct = tuple(dict.fromkeys(roots))
    if not distinct:
        raise BadBundleError(f"the bundle of {trust_domain!r} has no certificate")
    for root in distinct:
        if not _may_sign(root):
            subject = root.subject.rfc4514_string()
            raise BadBundleError(
                f"the bundle of {trust_domain!r} holds a certificate that is no authority ({subject}); "
                f"give its root certificate instead"
            )
    return distinct


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False
