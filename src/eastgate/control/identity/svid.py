"""An X.509-SVID, and the interface of its sources.

A source issues SVIDs and trust bundles, and reports their changes. Its users do not depend on its kind: the embedded CA
or a SPIRE agent.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Protocol, TypeAlias
from zlib import crc32

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from eastgate.basics.records import dataclass
from eastgate.control.identity.certificates import BadBundleError, UnknownTrustDomainError
from eastgate.ir.spiffe import trust_domain_problem
from eastgate.reading.strict_json import JsonProblem, read_object

# Trust bundles: the root certificates to trust, separately for each trust domain.


Roots = tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class TrustBundles:
    """The root certificates of the own trust domain and of federated ones. Create it with `of`.

    During the replacement of a root, a bundle holds the old root and the new one.
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
        """Return a copy with these roots for another trust domain, in place of its old ones."""
        if trust_domain == self.own:
            raise BadBundleError(
                f"{trust_domain!r} is the own trust domain; a bundle from another source may not replace it"
            )
        return replace(self, roots={**self.roots, trust_domain: _checked(trust_domain, roots)})


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

    Keys for other uses are ignored, as the standard requires.
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
                f"the bundle of {trust_domain!r} holds a certificate that is not a CA ({subject}); "
                f"give its root certificate instead"
            )
    return distinct


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


_JITTER_SHARE = 0.1
"""The share of a lifetime over which renewals are spread, so that SVIDs issued together are renewed at different times.
"""

_log = logging.getLogger(__name__)


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Svid:
    """An X.509-SVID: the leaf and its intermediates as PEM, and the private key of the leaf.

    `obtained` is the time of receipt. `not_before` may be earlier, since certificates are backdated.
    """

    identity: str
    chain: str = field(repr=False)
    private_key: str = field(repr=False)
    not_before: datetime
    not_after: datetime
    obtained: datetime = field(compare=False)

    @property
    def renew_at(self) -> datetime:
        """Return the time of its renewal: about half-way, which leaves the other half for retries."""
        lifetime = self.not_after - self.obtained
        spread = crc32(self.chain.encode()) / 2**32 - 0.5
        return self.obtained + lifetime * (0.5 + _JITTER_SHARE * spread)

    def expired(self, now: datetime) -> bool:
        return now >= self.not_after


@dataclass(frozen=True, slots=True)
class BundlesChanged:
    """The root certificates to trust have changed."""

    bundles: TrustBundles


@dataclass(frozen=True, slots=True)
class SvidsRenewed:
    """These identities have new SVIDs; None means all identities."""

    identities: frozenset[str] | None

    def concerns(self, identity: str) -> bool:
        """Return whether to fetch the SVID of this identity again."""
        return self.identities is None or identity in self.identities


IdentityChange: TypeAlias = BundlesChanged | SvidsRenewed


class SvidSource(Protocol):
    """A source of SVIDs and trust bundles."""

    @property
    def bundles(self) -> TrustBundles:
        """Return the root certificates to trust now."""
        ...

    async def svid(self, identity: str, dns_names: Sequence[str] = ()) -> Svid:
        """Return a valid SVID of this identity that carries these DNS names. Raises IdentityError."""
        ...

    def watch(self, changed: Callable[[IdentityChange], None]) -> Callable[[], None]:
        """Call `changed` with each change, in the thread of the event loop, until the returned function is called."""
        ...


class Watchers:
    """The callbacks of a source. A callback that fails does not stop the others."""

    def __init__(self) -> None:
        self._watching: dict[object, Callable[[IdentityChange], None]] = {}

    def add(self, changed: Callable[[IdentityChange], None]) -> Callable[[], None]:
        """Add a callback, until the returned function is called."""
        token = object()
        self._watching[token] = changed

        def stop() -> None:
            self._watching.pop(token, None)

        return stop

    def notify(self, change: IdentityChange) -> None:
        for changed in tuple(self._watching.values()):
            try:
                changed(change)
            except Exception:
                _log.exception("a watcher of identities failed on %s", type(change).__name__)
