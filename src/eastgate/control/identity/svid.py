"""An X.509-SVID, and the interface of its sources.

A source issues SVIDs and trust bundles and reports when either has changed. Its users need not know whether it is the
embedded CA or a SPIRE agent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Protocol, TypeAlias
from zlib import crc32

from eastgate.basics.records import dataclass
from eastgate.control.identity.bundles import TrustBundles

_JITTER = 0.1
"""The share of a lifetime over which renewals are spread, so that SVIDs issued together are not renewed together."""

_log = logging.getLogger(__name__)


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Svid:
    """The proof of an identity: the leaf and its intermediates as PEM, and the private key of the leaf.

    `obtained` is when we got it: a certificate is backdated, so that its own start says little.
    """

    identity: str
    chain: str = field(repr=False)
    private_key: str = field(repr=False)
    not_before: datetime
    not_after: datetime
    obtained: datetime = field(compare=False)

    @property
    def renew_at(self) -> datetime:
        """Return when to renew it: about half-way, which leaves as much time again for retries."""
        lifetime = self.not_after - self.obtained
        spread = crc32(self.chain.encode()) / 2**32 - 0.5
        return self.obtained + lifetime * (0.5 + _JITTER * spread)

    def expired(self, now: datetime) -> bool:
        return now >= self.not_after


@dataclass(frozen=True, slots=True)
class BundlesChanged:
    """Other root certificates are to be trusted from now on."""

    bundles: TrustBundles


@dataclass(frozen=True, slots=True)
class SvidsRenewed:
    """There are new SVIDs for these identities; None stands for all."""

    identities: frozenset[str] | None

    def concerns(self, identity: str) -> bool:
        """Return whether the SVID of this identity is to be fetched anew."""
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
    """The callbacks of a source. One that fails does not keep the others from being called."""

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
