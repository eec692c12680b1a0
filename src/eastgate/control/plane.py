"""The part that local and in-cluster control planes share: it follows a changing authority, and serves proxies.

To change the authority, hold `lock` and call `follow` afterwards, both in the thread of the event loop.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import AsyncExitStack
from types import TracebackType

from prometheus_client import Counter

from eastgate.authority.authority import Touched
from eastgate.basics.diagnostics.printable import printable
from eastgate.control.authorizer.checks import ProxyAnswer
from eastgate.control.authorizer.external import ExternalAuthorizers, ServiceAddress
from eastgate.control.authorizing import MeshAuthorizer
from eastgate.control.enforcement import Enforcement
from eastgate.control.events import Noted, OnEvent
from eastgate.control.fleet import SiteChange
from eastgate.control.identity import (
    BundlesChanged,
    EmbeddedCa,
    IdentityError,
    Rotation,
    Svid,
    SvidSource,
    TrustBundles,
    client_context,
)
from eastgate.control.sites import AuthorizerEndpoint
from eastgate.envoy.server.events import Acked, ResourceRejected, ServerEvent, Settled
from eastgate.envoy.server.server import AdsServer
from eastgate.ir import ExternalAuthorizer
from eastgate.ir.spiffe import trust_domain_of
from eastgate.ir.symbolic.names import MeshNames
from eastgate.settings import Settings

# Holds the certificates of a mesh: SVIDs of its workloads, and of callers from other trust domains.


class Certificates:
    """The CA of the mesh, and stand-in CAs for other trust domains, for test calls from these.

    Only a mesh with an embedded CA has stand-ins: Eastgate cannot sign for the federated domains of SPIRE.
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
        """Return the trust bundles for the verification of peers."""
        return self.source.bundles

    def federate(self, domains: Iterable[str]) -> list[str]:
        """Create stand-in CAs for these trust domains and trust them; return the new domains."""
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
        """Return a TLS client context for an identity. An untrusted domain gets a temporary CA, to test rejection."""
        domain = trust_domain_of(identity)
        if domain == self.bundles.own:
            svid = await self.source.svid(identity, self._names(identity))
        else:
            svid = await self._stand_ins.setdefault(domain, EmbeddedCa(domain)).svid(identity)
        return client_context(svid, self.bundles, self.bundles.own)

    def _names(self, identity: str) -> tuple[str, ...]:
        """Return the DNS names of an identity's SVID: its Linkerd name. SPIRE chooses the names itself."""
        name = self._naming.mesh_name(identity)
        return () if name == identity or not isinstance(self.source, EmbeddedCa) else (name,)


class ProxyPlane:
    """The enforcement, the server that sends it to proxies, their certificates, and the authorizer of gateways.

    Use it with `async with`.
    """

    def __init__(
        self,
        enforcement: Enforcement,
        server: AdsServer,
        source: SvidSource,
        on_event: OnEvent = lambda _: None,
    ) -> None:
        self.lock = threading.RLock()
        self.enforcement = enforcement
        self._server = server
        self._source = source
        self._on_event = on_event
        self.certificates = Certificates(
            source, enforcement.authority.settings, self._on_renewed, self._on_renewal_failure
        )
        self._held: dict[str, str] = {}  # the identity of the SVID of each node
        self._renewal_failures = Counter(
            "eastgate_svid_renewal_failures",
            "Certificates that could not be renewed.",
            registry=server.metrics.registry,
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> ProxyPlane:
        self._stack.push_async_callback(self.certificates.close)
        self._stack.callback(self._source.watch(self._on_source_change))
        self._stack.callback(self._server.listen(self._on_server_event))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def answer_checks(
        self,
        address_of: Callable[[ExternalAuthorizer], ServiceAddress | None],
        checks: AuthorizerEndpoint,
        tools: AuthorizerEndpoint,
        on_decided: Callable[[ProxyAnswer, float], None] = lambda _answer, _seconds: None,
    ) -> MeshAuthorizer:
        """Answer the checks of gateways from now on. `address_of` returns the addresses of external authorizers."""
        external = ExternalAuthorizers(address_of)
        self._stack.callback(external.close)
        authorizer = MeshAuthorizer(self.enforcement, external, checks, tools, self.lock, on_decided)
        return await self._stack.enter_async_context(authorizer)

    # What changes

    def follow(self, sites: SiteChange, touched: Touched) -> frozenset[str]:
        """Enforce the changed authority and sites; return the proxies whose resources were computed again."""
        with self.lock:
            nodes = self.enforcement.follow(sites, touched)
            for node in nodes:
                self._open_ports(node)  # a proxy that already has everything gets no update
        return nodes

    # What proxies do

    def _on_server_event(self, event: ServerEvent) -> None:
        match event:
            case Acked(proxy) | Settled(proxy):
                self._open_ports(self._server.node_of(proxy))
            case ResourceRejected(proxy, type_url, name, rejection):
                with self.lock:
                    self.enforcement.reject(self._server.node_of(proxy), (type_url, name), rejection)

    def _open_ports(self, node: str) -> None:
        """Open the closed ports of a node whose resources its proxies have all accepted."""
        with self.lock:
            while self.enforcement.has_closed(node) and self.enforcement.accept(
                node, self._server.status_of_node(node)
            ):
                pass  # the published resources may open further ports

    # Certificates

    async def publish_secrets(
        self, nodes: Iterable[str], removed: Iterable[str] = (), *, anew: Collection[str] = ()
    ) -> dict[str, IdentityError | None]:
        """Publish SVID and trust bundles of nodes without an SVID, of nodes with a new identity, and of the nodes
        `anew`.

        Return the nodes whose SVIDs were requested, each with the error if it has none. An SVID without a node is
        released.
        """
        before = {*self._held.values()}
        for node in removed:
            self._held.pop(node, None)
        asked: dict[str, IdentityError | None] = {}
        for node in nodes:
            identity = self.enforcement.identity_of(node)
            if identity is None or (self._held.get(node) == identity and node not in anew):
                continue
            asked[node] = None
            try:
                svid = await self.certificates.hold(identity)
            except IdentityError as error:
                asked[node] = error
                continue
            if self.enforcement.identity_of(node) == identity:  # it may have changed meanwhile
                self._held[node] = identity
                with self.lock:
                    self.enforcement.put_svid(node, svid)
                    self.enforcement.put_trust(node, self.certificates.bundles)
        for unused in before - {*self._held.values()}:
            await self.certificates.release(unused)
        return asked

    def _on_renewed(self, svid: Svid) -> None:
        with self.lock:
            for node in [node for node, identity in self._held.items() if identity == svid.identity]:
                self.enforcement.put_svid(node, svid)
        self._on_event(Noted(f"the certificate of {svid.identity} was renewed"))

    def _on_renewal_failure(self, identity: str, error: Exception) -> None:
        self._renewal_failures.inc()
        self._on_event(Noted(printable(f"the certificate of {identity} could not be renewed: {error}"), trouble=True))

    def _on_source_change(self, change: object) -> None:
        if isinstance(change, BundlesChanged):
            with self.lock:
                for node in self._held:
                    self.enforcement.put_trust(node, self.certificates.bundles)
