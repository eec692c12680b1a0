"""Holds the certificates of a mesh: SVIDs of its workloads, and of callers of other trust domains."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable

from eastgate.control.identity import EmbeddedCa, Rotation, Svid, SvidSource, TrustBundles, client_context
from eastgate.ir.spiffe import trust_domain_of
from eastgate.ir.symbolic.names import MeshNames
from eastgate.settings import Settings


class Certificates:
    """The CA of the mesh, and stand-in CAs for other trust domains, so that calls from there can be tried.

    Only a mesh with an embedded CA has stand-ins: nothing here can sign for SPIRE's federated domains.
    """

    def __init__(
        self,
        source: SvidSource,
        settings: Settings,
        on_renewed: Callable[[Svid], None],
        on_failure: Callable[[str, Exception], None],
    ) -> None:
        self.source = source
        self._naming = MeshNames(settings)
        self._stand_ins: dict[str, EmbeddedCa] = {}
        self._rotation = Rotation(source, on_renewed=on_renewed, on_failure=on_failure)

    async def close(self) -> None:
        """Stop renewing."""
        await self._rotation.close()

    @property
    def bundles(self) -> TrustBundles:
        """Return the trust bundles that peers are verified with."""
        return self.source.bundles

    def federate(self, domains: Iterable[str]) -> list[str]:
        """Create stand-in CAs for these trust domains and trust them; return those that are new."""
        if not isinstance(self.source, EmbeddedCa):
            return []
        new = sorted({domain for domain in domains if domain not in self.bundles.trust_domains})
        for domain in new:
            stand_in = self._stand_ins[domain] = EmbeddedCa(domain)
            self.source.federate(domain, stand_in.bundles.of_domain(domain))
        return new

    async def hold(self, identity: str) -> Svid:
        """Return the SVID of a workload, and renew it from now on."""
        return await self._rotation.hold(identity, self._names(identity))

    async def release(self, identity: str) -> None:
        """Stop renewing the SVID of an identity."""
        await self._rotation.release(identity)

    async def context(self, identity: str) -> ssl.SSLContext:
        """Return a TLS client context for an identity. Untrusted domains get a throwaway CA, so that rejection can be
        tested.
        """
        domain = trust_domain_of(identity)
        if domain == self.bundles.own:
            svid = await self.source.svid(identity, self._names(identity))
        else:
            svid = await self._stand_ins.setdefault(domain, EmbeddedCa(domain)).svid(identity)
        return client_context(svid, self.bundles, self.bundles.own)

    def _names(self, identity: str) -> tuple[str, ...]:
        """Return the DNS names of an identity's SVID: its Linkerd name. SPIRE decides itself what to put there."""
        name = self._naming.mesh_name(identity)
        return () if name == identity or not isinstance(self.source, EmbeddedCa) else (name,)
