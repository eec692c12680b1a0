"""An X.509-SVID, and the two places it can come from, seen from the side of those who need one.

A source hands out SVIDs and trust bundles and says when either has changed. Whether it is the authority inside this
process or a SPIRE agent beside it makes no difference to anybody else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeAlias
from zlib import crc32

from eastgate.identity.bundles import TrustBundles

__all__ = ["BundlesChanged", "Change", "Svid", "SvidSource", "SvidsRenewed", "Watchers", "utc_now"]

_JITTER = 0.1
"""The part of a lifetime over which renewals are spread, so that what was issued together is not renewed together."""

_log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Svid:
    """A proof of an identity: the leaf and its intermediates as PEM, and the private key that goes with the leaf.

    `obtained` is when it came into our hands: a certificate is backdated, so that its own start says little.
    """

    identity: str
    chain: str = field(repr=False)
    private_key: str = field(repr=False)
    not_before: datetime
    not_after: datetime
    obtained: datetime = field(compare=False)

    @property
    def renew_at(self) -> datetime:
        """When to replace it: about half-way, so that there is as much time again for what may go wrong."""
        lifetime = self.not_after - self.obtained
        spread = crc32(self.chain.encode()) / 2**32 - 0.5
        return self.obtained + lifetime * (0.5 + _JITTER * spread)

    def expired(self, now: datetime) -> bool:
        """Whether nobody would accept it any more."""
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
        """Whether the SVID of this identity is to be fetched anew."""
        return self.identities is None or identity in self.identities


Change: TypeAlias = BundlesChanged | SvidsRenewed


class SvidSource(Protocol):
    """Where SVIDs and bundles come from."""

    @property
    def bundles(self) -> TrustBundles:
        """The root certificates to trust now."""
        ...

    async def svid(self, identity: str, dns_names: Sequence[str] = ()) -> Svid:
        """A valid SVID of this identity that carries these DNS names, or an `IdentityError`."""
        ...

    def watch(self, changed: Callable[[Change], None]) -> Callable[[], None]:
        """Be told of each change, in the thread of the event loop. Call what is returned to be told no more."""
        ...


class Watchers:
    """Those who want to be told of changes. One that fails does not keep the others from hearing."""

    def __init__(self) -> None:
        self._watching: dict[object, Callable[[Change], None]] = {}

    def add(self, changed: Callable[[Change], None]) -> Callable[[], None]:
        """Tell this one too, until what is returned is called."""
        token = object()
        self._watching[token] = changed

        def stop() -> None:
            self._watching.pop(token, None)

        return stop

    def tell(self, change: Change) -> None:
        """Tell everyone."""
        for changed in tuple(self._watching.values()):
            try:
                changed(change)
            except Exception:
                _log.exception("a watcher of identities failed on %s", type(change).__name__)
