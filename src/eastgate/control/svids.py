"""The SVIDs and trust bundles that proxies have: published with what they enforce, renewed, and released."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from eastgate.control.certificates import Certificates
from eastgate.control.enforcement import Enforcement
from eastgate.control.identity import BundlesChanged, IdentityError, Svid


class ProxySvids:
    """Publishes the SVID of each proxy, and the bundles with which it verifies its peers."""

    def __init__(self, enforcement: Enforcement, certificates: Certificates) -> None:
        self._enforcement = enforcement
        self._certificates = certificates
        self._held: dict[str, str] = {}  # the identities whose SVIDs nodes have

    async def publish(
        self, nodes: Iterable[str], removed: Iterable[str] = (), *, anew: Collection[str] = ()
    ) -> dict[str, IdentityError | None]:
        """Publish the SVIDs of nodes that have none, or another identity, and of those `anew`; forget `removed` nodes.

        Return the nodes whose SVIDs were asked for, each with the reason for which it has none. An SVID that no node
        has any more is released.
        """
        before = {*self._held.values()}
        for node in removed:
            self._held.pop(node, None)
        asked: dict[str, IdentityError | None] = {}
        for node in nodes:
            identity = self._enforcement.identity_of(node)
            if identity is None or (self._held.get(node) == identity and node not in anew):
                continue
            asked[node] = None
            try:
                svid = await self._certificates.hold(identity)
            except IdentityError as error:
                asked[node] = error
                continue
            if self._enforcement.identity_of(node) == identity:  # it may have changed meanwhile
                self._held[node] = identity
                self._enforcement.put_svid(node, svid)
                self._enforcement.put_trust(node, self._certificates.bundles)
        for unused in before - {*self._held.values()}:
            await self._certificates.release(unused)
        return asked

    def renew(self, svid: Svid) -> None:
        """Publish an SVID that was renewed."""
        for node, identity in self._held.items():
            if identity == svid.identity:
                self._enforcement.put_svid(node, svid)

    def follow_source(self, change: object) -> None:
        """Publish the trust bundles if they have changed."""
        if isinstance(change, BundlesChanged):
            for node in self._held:
                self._enforcement.put_trust(node, self._certificates.bundles)
