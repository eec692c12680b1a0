"""Gets SVIDs from a SPIRE agent, or another server of the SPIFFE Workload API on a Unix socket.

The agent chooses the identities of this process, and pushes new SVIDs and bundles at any time. The library `spiffe`
reads that stream in its own thread. The reconnecting of the library is not used: it does not report failures, so
Eastgate could not distinguish an agent that is down from one that refuses this process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from types import TracebackType
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from eastgate.basics.records import dataclass
from eastgate.basics.tasks import BackgroundTask, RetryDelay
from eastgate.control.identity.certificates import (
    IdentityError,
    IdentityNotGrantedError,
    MissingDnsNameError,
    NoWorkloadApiError,
    SvidExpiredError,
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

if TYPE_CHECKING:
    from spiffe import X509Bundle, X509Svid
    from spiffe.workloadapi.x509_context import X509Context

_FIRST_RETRY_SECONDS = 0.1
_MAX_RETRY_SECONDS = 10.0
_LOST = "the Workload API is lost"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Received:
    """The last update of the agent."""

    svids: dict[str, Svid] = field(repr=False)
    bundles: TrustBundles


class WorkloadApi:
    """The identities that an agent gives to this process. An `SvidSource`. Use it with `async with`.

    After `timeout` seconds without an answer, the agent counts as unreachable.
    """

    def __init__(self, socket: str, trust_domain: str, *, timeout: float = 10.0) -> None:
        self._socket = socket if socket.startswith("unix:") else f"unix:{socket}"
        self._trust_domain = trust_domain
        self._timeout = timeout
        self._received: _Received | None = None
        self._answered = asyncio.Event()
        self._problem: IdentityError | None = None
        self._watchers = Watchers()
        delay = RetryDelay(_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS)
        self._task = BackgroundTask("the Workload API", self._follow, self._on_lost, delay)

    async def __aenter__(self) -> WorkloadApi:
        self._task.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._task.stop()

    @property
    def bundles(self) -> TrustBundles:
        """Return the roots of the last update. Raises NoWorkloadApiError before the first update."""
        if self._received is None:
            raise self._unreachable()
        return self._received.bundles

    def watch(self, changed: Callable[[IdentityChange], None]) -> Callable[[], None]:
        """Call `changed` with each change, until the returned function is called."""
        return self._watchers.add(changed)

    async def svid(self, identity: str, dns_names: Sequence[str] = ()) -> Svid:
        """Return the last SVID of this identity. It stays in use while the agent is unreachable."""
        received = await self._first_answer()
        svid = received.svids.get(identity)
        if svid is None:
            others = ", ".join(sorted(received.svids)) or "no identity at all"
            raise IdentityNotGrantedError(
                f"the agent at {self._socket} does not give {identity!r} to this process, but {others}; "
                f"register an entry for it whose selectors match this process"
            )
        if svid.expired(utc_now()):
            raise SvidExpiredError(
                f"the agent at {self._socket} has not renewed {identity!r}, which expired at "
                f"{svid.not_after:%Y-%m-%d %H:%M:%S} UTC; see whether it reaches its server"
            )
        missing = [name for name in dns_names if name not in _dns_names(svid)]
        if missing:
            raise MissingDnsNameError(
                f"the agent gives {identity!r} without the DNS name {', '.join(missing)}; add it to the entry (-dns)"
            )
        return svid

    async def _first_answer(self) -> _Received:
        if not self._answered.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._answered.wait(), self._timeout)
        if self._received is None:
            raise self._unreachable()
        return self._received

    def _unreachable(self) -> IdentityError:
        waited = "it has not answered" if self._problem is None else str(self._problem)
        kind = IdentityNotGrantedError if isinstance(self._problem, IdentityNotGrantedError) else NoWorkloadApiError
        return kind(
            f"no identities from the agent at {self._socket}: {waited}; see that it runs, and that this process may "
            f"use its socket and has an entry"
        )

    async def _follow(self) -> None:
        """Receive updates until the stream ends, which is always an error."""
        from spiffe import WorkloadApiClient

        client = await asyncio.to_thread(WorkloadApiClient, self._socket)
        loop = asyncio.get_running_loop()
        pushed: asyncio.Queue[X509Context | Exception] = asyncio.Queue()

        def hand_over(item: X509Context | Exception) -> None:
            with suppress(RuntimeError):  # the loop is closed, and nothing waits for the item
                loop.call_soon_threadsafe(pushed.put_nowait, item)

        stream = client.stream_x509_contexts(hand_over, hand_over, retry_connect=False)
        try:
            while True:
                item = await pushed.get()
                if isinstance(item, Exception):
                    raise item
                self._receive(item)
        finally:
            stream.cancel()
            client.close()

    def _receive(self, context: X509Context) -> None:
        before = self._received
        received = _Received(_svids(context), _bundles(self._trust_domain, context))
        self._received, self._problem = received, None
        _log.info("the Workload API at %s answers again", self._socket, extra={"over": _LOST})
        self._task.works()
        self._answered.set()
        if before is None or before.bundles != received.bundles:
            self._watchers.notify(BundlesChanged(received.bundles))
        svids_before = {} if before is None else before.svids
        changed = frozenset(
            name for name in {*svids_before, *received.svids} if svids_before.get(name) != received.svids.get(name)
        )
        if changed:
            self._watchers.notify(SvidsRenewed(changed))

    def _on_lost(self, _name: str, error: Exception) -> None:
        """Record the loss of the agent. SVIDs stay in use while it is unreachable, but not after a refusal."""
        refused = "PERMISSION_DENIED" in str(error)
        kind = IdentityNotGrantedError if refused else NoWorkloadApiError
        self._problem = kind("it gives no identity to this process" if refused else str(error))
        _log.warning("lost the Workload API at %s: %s", self._socket, self._problem, extra={"trouble": _LOST})
        if refused and self._received is not None and self._received.svids:
            gone = frozenset(self._received.svids)
            self._received = _Received({}, self._received.bundles)
            self._watchers.notify(SvidsRenewed(gone))


def _svids(context: X509Context) -> dict[str, Svid]:
    """Return the SVIDs by identity. Of two SVIDs of one identity, the one with the later expiry counts."""
    svids: dict[str, Svid] = {}
    for x509_svid in context.x509_svids:
        svid = _svid(x509_svid)
        other = svids.get(svid.identity)
        if other is None or other.not_after < svid.not_after:
            svids[svid.identity] = svid
    return svids


def _svid(x509_svid: X509Svid) -> Svid:
    return Svid(
        identity=str(x509_svid.spiffe_id),
        chain="".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in x509_svid.cert_chain),
        private_key=x509_svid.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        not_before=x509_svid.leaf.not_valid_before_utc,
        not_after=x509_svid.leaf.not_valid_after_utc,
        obtained=utc_now(),
    )


def _bundles(own: str, context: X509Context) -> TrustBundles:
    roots_by_domain = {bundle.trust_domain.name: _roots(bundle) for bundle in context.x509_bundle_set.bundles}
    if own not in roots_by_domain:
        served = ", ".join(sorted(roots_by_domain))
        raise IdentityNotGrantedError(
            f"it serves the trust domain {served} and not {own!r}: set trustDomain to that of SPIRE"
        )
    bundles = TrustBundles.of(own, roots_by_domain.pop(own))
    for trust_domain, roots in roots_by_domain.items():
        bundles = bundles.federated(trust_domain, roots)
    return bundles


def _roots(bundle: X509Bundle) -> list[x509.Certificate]:
    """Return the roots in a stable order, so that equal roots make equal bundles."""
    return sorted(bundle.x509_authorities, key=lambda root: root.fingerprint(hashes.SHA256()))


def _dns_names(svid: Svid) -> list[str]:
    leaf = x509.load_pem_x509_certificate(svid.chain.encode())
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.DNSName)
