"""Certificates for everyone in a mesh, and for those outside whom it believes."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from types import TracebackType

from eastgate.identity import EmbeddedAuthority, Rotation, Svid, SvidSource, TrustBundles, client_context
from eastgate.mesh.events import Noted, OnEvent
from eastgate.mesh.metrics import MeshMetrics
from eastgate.policy.spiffe import trust_domain_of
from eastgate.printable import printable
from eastgate.settings import Settings
from eastgate.symbolic.names import MeshNames

__all__ = ["Certificates"]


class Certificates:
    """The authority of the mesh, and stand-ins for those of other trust domains, so that their callers can be tried.

    Only a mesh with an authority of its own has stand-ins: nobody can speak for SPIRE's federated domains.
    """

    def __init__(
        self,
        source: SvidSource,
        settings: Settings,
        metrics: MeshMetrics,
        on_event: OnEvent,
        on_renewed: Callable[[Svid], None],
    ) -> None:
        self.source = source
        self._naming = MeshNames(settings)
        self._metrics = metrics
        self._on_event = on_event
        self._stand_ins: dict[str, EmbeddedAuthority] = {}
        self._rotation = Rotation(source, on_renewed=on_renewed, on_failure=self._failed)

    async def __aenter__(self) -> Certificates:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._rotation.close()

    @property
    def bundles(self) -> TrustBundles:
        """Whose certificates are believed."""
        return self.source.bundles

    def federate(self, domains: Iterable[str]) -> list[str]:
        """Stand in for the authorities of these trust domains; tells for which that is new."""
        if not isinstance(self.source, EmbeddedAuthority):
            return []
        new = sorted({domain for domain in domains if domain not in self.bundles.trust_domains})
        for domain in new:
            stand_in = self._stand_ins[domain] = EmbeddedAuthority(domain)
            self.source.federate(domain, stand_in.bundles.of_domain(domain))
        return new

    async def hold(self, identity: str) -> Svid:
        """The certificate of a workload, kept fresh from now on."""
        return await self._rotation.hold(identity, self._names(identity))

    async def release(self, identity: str) -> None:
        """Nobody needs it any more."""
        await self._rotation.release(identity)

    async def context(self, identity: str) -> ssl.SSLContext:
        """How a caller of this identity shakes hands. Of a domain that nobody believes, it has a certificate too."""
        domain = trust_domain_of(identity)
        if domain == self.bundles.own:
            svid = await self.source.svid(identity, self._names(identity))
        else:
            svid = await self._stand_ins.setdefault(domain, EmbeddedAuthority(domain)).svid(identity)
        return client_context(svid, self.bundles, self.bundles.own)

    def _names(self, identity: str) -> tuple[str, ...]:
        """An account's name in Linkerd, as a name of its certificate. What SPIRE puts into one is SPIRE's to say."""
        name = self._naming.mesh_name(identity)
        return () if name == identity or not isinstance(self.source, EmbeddedAuthority) else (name,)

    def _failed(self, identity: str, error: Exception) -> None:
        self._metrics.renewal_failures.inc()
        self._on_event(Noted(printable(f"the certificate of {identity} could not be renewed: {error}"), trouble=True))
