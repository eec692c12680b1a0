"""An issuer whose certificate and key another program makes and renews, such as cert-manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from eastgate.basics.records import dataclass
from eastgate.control.identity.ca import Lifetimes, Retired, check_identity
from eastgate.control.identity.certificates import (
    BadIdentityError,
    Period,
    Signer,
    StoredCaError,
    key_pem,
    new_key,
    new_leaf,
)
from eastgate.control.identity.svid import (
    BundlesChanged,
    IdentityChange,
    Svid,
    SvidsRenewed,
    TrustBundles,
    Watchers,
    roots_of_pem,
    utc_now,
)


@dataclass(frozen=True, slots=True)
class IssuerFiles:
    """A CA as cert-manager writes it: the signing certificate, those between it and a root, and the roots."""

    signer: Signer
    between: tuple[x509.Certificate, ...]
    roots: tuple[x509.Certificate, ...]


def read_issuer(chain: bytes, key: bytes, roots: bytes) -> IssuerFiles:
    """Read a CA from PEM. Without roots, the signing certificate is the root.

    Raises StoredCaError, also for a CA whose SVIDs no peer would accept.
    """
    try:
        certificates = roots_of_pem(chain)
        private = load_pem_private_key(key, password=None)
        trusted = roots_of_pem(roots) if roots.strip() else (certificates[0],)
        first = certificates[0]
        is_of_key, is_ca = private.public_key() == first.public_key(), _is_ca(first)
    except Exception:  # without the text of the error, which may quote the key
        raise StoredCaError("the CA's certificate, key or roots cannot be read") from None
    if not isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise StoredCaError("the CA's key is neither ECDSA nor RSA")
    if not is_of_key:
        raise StoredCaError("the CA's key is not that of its certificate")
    if not is_ca:
        raise StoredCaError("the CA's certificate may not sign others: it is not a CA certificate")
    between = tuple(certificate for certificate in certificates if certificate not in trusted)
    if not _leads_to(trusted, first, between):
        raise StoredCaError("the CA's certificate does not chain to the roots beside it")
    return IssuerFiles(Signer(first, private), between, trusted)


def _is_ca(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _leads_to(
    roots: Sequence[x509.Certificate], certificate: x509.Certificate, between: Sequence[x509.Certificate]
) -> bool:
    """Return whether a certificate chains to a root through these certificates."""
    if certificate in roots or any(_has_issued(root, certificate) for root in roots):
        return True
    others = tuple(each for each in between if each != certificate)
    return any(_has_issued(each, certificate) and _leads_to(roots, each, others) for each in others)


def _has_issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


class IssuerCa:
    """A source of SVIDs for one trust domain, signed by a CA that another program replaces. An `SvidSource`.

    After a replacement, the old roots are trusted until the SVIDs that they signed have expired.
    """

    def __init__(
        self,
        trust_domain: str,
        files: IssuerFiles,
        *,
        lifetimes: Lifetimes | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.trust_domain = trust_domain
        self._files = files
        self._lifetimes = lifetimes or Lifetimes()
        self._clock = clock
        self._retired: tuple[Retired, ...] = ()
        self._watchers = Watchers()
        self._bundles = TrustBundles.of(trust_domain, files.roots)

    @property
    def bundles(self) -> TrustBundles:
        """Return the roots to trust."""
        return self._bundles

    @property
    def end(self) -> datetime:
        """Return the expiry of the signing CA."""
        return self._files.signer.end

    def watch(self, changed: Callable[[IdentityChange], None]) -> Callable[[], None]:
        """Call `changed` with each change, until the returned function is called."""
        return self._watchers.add(changed)

    def adopt(self, files: IssuerFiles) -> None:
        """Sign with another CA from now on, and renew every SVID."""
        if files == self._files:
            return
        now = self._clock()
        until = now + self._lifetimes.svid + self._lifetimes.backdate
        gone = (root for root in self._files.roots if root not in files.roots)
        kept = (old for old in self._retired if now < old.until and old.certificate not in files.roots)
        self._retired = (*kept, *(Retired(root, until) for root in gone))
        self._files = files
        self._publish()
        self._watchers.notify(SvidsRenewed(None))

    async def svid(self, identity: str, dns_names: Sequence[str] = ()) -> Svid:
        """Issue an SVID with a new key."""
        return self.issue(identity, dns_names)

    def issue(self, identity: str, dns_names: Sequence[str] = ()) -> Svid:
        """Issue an SVID with a new key, without awaiting. Raises BadIdentityError once the CA has expired."""
        check_identity(self.trust_domain, identity, dns_names)
        now = self._clock()
        self._drop_retired(now)
        signer, key = self._files.signer, new_key()
        if signer.end <= now:
            raise BadIdentityError(f"the CA of {self.trust_domain!r} expired at {signer.end:%Y-%m-%d %H:%M} UTC")
        start = max(now - self._lifetimes.backdate, signer.certificate.not_valid_before_utc)
        period = Period(start, min(now + self._lifetimes.svid, signer.end))
        certificate = new_leaf(identity, dns_names, key.public_key(), signer, period)
        chain = _pem((certificate, *self._files.between))
        not_before, not_after = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return Svid(identity, chain, key_pem(key), not_before, not_after, obtained=now)

    def _drop_retired(self, now: datetime) -> None:
        left = tuple(old for old in self._retired if now < old.until)
        if left != self._retired:
            self._retired = left
            self._publish()

    def _publish(self) -> None:
        bundles = self._bundles.with_own((*self._files.roots, *(old.certificate for old in self._retired)))
        if bundles != self._bundles:
            self._bundles = bundles
            self._watchers.notify(BundlesChanged(bundles))


def _pem(certificates: Iterable[x509.Certificate]) -> str:
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)
