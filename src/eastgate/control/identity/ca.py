"""An embedded certificate authority (CA), for clusters without SPIRE and for tests.

    root          long-lived, in every bundle; signs intermediates
    intermediate  signs SVIDs; replaced without a new bundle, since each SVID includes it
    SVID          valid for an hour; expires soon instead of being revoked

A root is replaced in two steps, so that no peer gets a certificate before its root: `prepare_root` puts the next root
into the bundle. Once every peer has that bundle, `activate_root` begins to sign with it. The old root stays until the
certificates that it signed have expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from eastgate.basics.records import dataclass
from eastgate.control.identity.certificates import (
    BadIdentityError,
    Period,
    Signer,
    key_pem,
    new_intermediate,
    new_key,
    new_leaf,
    new_root,
)
from eastgate.control.identity.svid import (
    BundlesChanged,
    IdentityChange,
    Svid,
    SvidsRenewed,
    TrustBundles,
    Watchers,
    utc_now,
)
from eastgate.ir.spiffe import spiffe_problem, trust_domain_problem


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The validity of each certificate; `backdate` tolerates slow clocks."""

    svid: timedelta = timedelta(hours=1)
    intermediate: timedelta = timedelta(days=7)
    root: timedelta = timedelta(days=3650)
    backdate: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        if not timedelta(seconds=1) <= self.svid <= self.intermediate <= self.root:
            raise ValueError(
                "an SVID must be valid for at least a second, its intermediate at least as long, and the root too"
            )
        if self.backdate < timedelta():
            raise ValueError("the backdate must not be negative: certificates are dated back, not forward")


@dataclass(frozen=True, slots=True)
class Retired:
    """A root that no longer signs, and the time until which it is trusted."""

    certificate: x509.Certificate
    until: datetime


@dataclass(frozen=True, slots=True)
class CaState:
    """The state of a CA that must survive a restart."""

    trust_domain: str
    root: Signer
    intermediate: Signer
    prepared: Signer | None = None
    retired: tuple[Retired, ...] = ()

    @property
    def roots(self) -> tuple[x509.Certificate, ...]:
        """Return the trusted roots, the active ones first."""
        prepared = () if self.prepared is None else (self.prepared.certificate,)
        return (self.root.certificate, *prepared, *(old.certificate for old in self.retired))


def create_state(trust_domain: str, lifetimes: Lifetimes, now: datetime) -> CaState:
    """Create a CA."""
    root = new_root(trust_domain, _period(lifetimes, now, lifetimes.root))
    return CaState(trust_domain, root, _new_intermediate(trust_domain, root, lifetimes, now))


def prepare_root(state: CaState, lifetimes: Lifetimes, now: datetime) -> CaState:
    """Return a state that trusts a new root but does not sign with it yet."""
    return replace(state, prepared=new_root(state.trust_domain, _period(lifetimes, now, lifetimes.root)))


def activate_root(state: CaState, lifetimes: Lifetimes, now: datetime, overlap: timedelta | None = None) -> CaState:
    """Return a state that signs with the prepared root. The old root is trusted until its certificates have expired."""
    if state.prepared is None:
        raise BadIdentityError("there is no new root; call prepare_root, and wait until every peer has its bundle")
    until = now + (lifetimes.svid + lifetimes.backdate if overlap is None else overlap)
    return CaState(
        state.trust_domain,
        root=state.prepared,
        intermediate=_new_intermediate(state.trust_domain, state.prepared, lifetimes, now),
        retired=(*state.retired, Retired(state.root.certificate, until)),
    )


def drop_retired(state: CaState, now: datetime) -> CaState:
    """Return a state without the retired roots that are no longer trusted."""
    return replace(state, retired=tuple(old for old in state.retired if now < old.until))


def with_new_intermediate(state: CaState, lifetimes: Lifetimes, now: datetime) -> CaState:
    """Return a state with a new intermediate."""
    return replace(state, intermediate=_new_intermediate(state.trust_domain, state.root, lifetimes, now))


def _new_intermediate(trust_domain: str, root: Signer, lifetimes: Lifetimes, now: datetime) -> Signer:
    return new_intermediate(trust_domain, root, _period(lifetimes, now, lifetimes.intermediate, root))


def _period(lifetimes: Lifetimes, now: datetime, lifetime: timedelta, by: Signer | None = None) -> Period:
    end = now + lifetime
    return Period(now - lifetimes.backdate, end if by is None else min(end, by.end))


class EmbeddedCa:
    """A CA that issues SVIDs for one trust domain. An `SvidSource`. Use it from one thread.

    `save` is called with each new state before its use, so that no root signs anything that a restart would lose.
    """

    def __init__(
        self,
        trust_domain: str,
        *,
        state: CaState | None = None,
        lifetimes: Lifetimes | None = None,
        clock: Callable[[], datetime] = utc_now,
        save: Callable[[CaState], None] | None = None,
    ) -> None:
        problem = trust_domain_problem(trust_domain)
        if problem:
            raise BadIdentityError(problem)
        if state is not None and state.trust_domain != trust_domain:
            raise BadIdentityError(
                f"the CA belongs to the trust domain {state.trust_domain!r}, not to {trust_domain!r}; "
                f"start with an empty folder to make a new one"
            )
        self.trust_domain = trust_domain
        self._lifetimes = lifetimes or Lifetimes()
        self._clock = clock
        self._save = save
        self._watchers = Watchers()
        self._state = state or self._create_state()
        self._bundles = TrustBundles.of(trust_domain, self._state.roots)

    @property
    def bundles(self) -> TrustBundles:
        """Return the roots to trust: those of this CA, and of federated trust domains."""
        return self._bundles

    def watch(self, changed: Callable[[IdentityChange], None]) -> Callable[[], None]:
        """Call `changed` with each change, until the returned function is called."""
        return self._watchers.add(changed)

    async def svid(self, identity: str, dns_names: Sequence[str] = ()) -> Svid:
        """Issue an SVID with a new key."""
        return self.issue(identity, dns_names)

    def issue(self, identity: str, dns_names: Sequence[str] = ()) -> Svid:
        """Issue an SVID with a new key, without awaiting."""
        check_identity(self.trust_domain, identity, dns_names)
        now = self._clock()
        self.drop_retired()
        self._refresh(now)
        signer, key = self._state.intermediate, new_key()
        period = self._period(now, self._lifetimes.svid, signer)
        certificate = new_leaf(identity, dns_names, key.public_key(), signer, period)
        chain = certificate.public_bytes(Encoding.PEM).decode() + signer.pem
        # A certificate has times in whole seconds, so its own times are the ones that peers check.
        start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return Svid(identity, chain, key_pem(key), start, end, obtained=now)

    @property
    def state(self) -> CaState:
        """Return the state that must survive a restart."""
        return self._state

    def adopt(self, state: CaState) -> None:
        """Use the state of another instance of this CA. If its root differs, every SVID is renewed."""
        if state.trust_domain != self.trust_domain:
            raise BadIdentityError(f"the CA belongs to the trust domain {state.trust_domain!r}")
        renews = state.root.certificate != self._state.root.certificate
        self._replace_state(state)
        if renews:
            self._watchers.notify(SvidsRenewed(None))

    def roll_intermediate(self) -> None:
        """Sign with a new intermediate from now on, and renew every SVID."""
        self._replace_state(replace(self._state, intermediate=self._intermediate(self._state.root, self._clock())))
        self._watchers.notify(SvidsRenewed(None))

    def prepare_root(self) -> None:
        """Create the next root and trust it, without signing with it yet."""
        if self._state.prepared is None:
            self._replace_state(prepare_root(self._state, self._lifetimes, self._clock()))

    def activate_root(self, overlap: timedelta | None = None) -> None:
        """Sign with the prepared root, and renew every SVID.

        The old root stays trusted for `overlap`, or until every SVID that it signed has expired.
        """
        if self._state.prepared is None:
            raise BadIdentityError("there is no new root; call prepare_root, and wait until every peer has its bundle")
        state = activate_root(self._state, self._lifetimes, self._clock(), overlap)
        self._replace_state(state)
        self._watchers.notify(SvidsRenewed(None))

    def drop_retired(self) -> None:
        """Stop trusting the retired roots after their time."""
        state = drop_retired(self._state, self._clock())
        if state != self._state:
            self._replace_state(state)

    def federate(self, trust_domain: str, roots: Iterable[x509.Certificate]) -> None:
        """Trust these roots for the identities of another trust domain only."""
        self._publish(self._bundles.federated(trust_domain, roots))

    def _create_state(self) -> CaState:
        state = create_state(self.trust_domain, self._lifetimes, self._clock())
        if self._save is not None:
            self._save(state)
        return state

    def _refresh(self, now: datetime) -> None:
        """Replace the intermediate if it would expire before the SVIDs that it signs."""
        needed = now + self._lifetimes.svid
        if self._state.root.end < needed:
            raise BadIdentityError(
                f"the root certificate of {self.trust_domain!r} ends at {self._state.root.end:%Y-%m-%d %H:%M} UTC; "
                f"replace it with prepare_root and activate_root"
            )
        if self._state.intermediate.end < needed:
            self._replace_state(replace(self._state, intermediate=self._intermediate(self._state.root, now)))

    def _intermediate(self, root: Signer, now: datetime) -> Signer:
        return _new_intermediate(self.trust_domain, root, self._lifetimes, now)

    def _period(self, now: datetime, lifetime: timedelta, by: Signer) -> Period:
        return _period(self._lifetimes, now, lifetime, by)

    def _replace_state(self, state: CaState) -> None:
        if self._save is not None:
            self._save(state)
        self._state = state
        self._publish(self._bundles.with_own(state.roots))

    def _publish(self, bundles: TrustBundles) -> None:
        if bundles != self._bundles:
            self._bundles = bundles
            self._watchers.notify(BundlesChanged(bundles))


def check_identity(trust_domain: str, identity: str, dns_names: Sequence[str]) -> None:
    """Raise BadIdentityError if a CA of this trust domain cannot issue an identity with these names."""
    problem = spiffe_problem(identity)
    if problem:
        raise BadIdentityError(f"{identity!r} is not a SPIFFE ID: {problem}")
    if not identity.startswith(f"spiffe://{trust_domain}/"):
        raise BadIdentityError(f"{identity!r} is not in the trust domain {trust_domain!r}, the only one of this CA")
    for name in dns_names:
        if not name or not name.isascii() or len(name) > 253:
            raise BadIdentityError(f"{name!r} is not a DNS name of at most 253 ASCII characters")
