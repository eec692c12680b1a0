"""Turns policies into Envoy resources: an authority and the sites of proxies in, the resources of each proxy out.

It starts no process and opens no socket: it writes into the store, which the xDS server serves. A changed policy is
compiled again for the workloads that it touches, and reaches the store only where it makes a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from secrets import token_hex
from typing import NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from eastgate.authority.authority import Authority
from eastgate.basics.collection import no_collection
from eastgate.basics.records import dataclass
from eastgate.cluster import Change
from eastgate.cluster.points import Direction, NetworkEnd, Point
from eastgate.control.capturing import CapturedResources, capture_of, captured_outbound
from eastgate.control.closures import TRUST, Closure, Closures, closing_of
from eastgate.control.gateway_tls import handshakes_of, secrets_of
from eastgate.control.gateways import (
    GatewaySite,
    gateway_identity,
    legs_of,
)
from eastgate.control.identity import Svid, TrustBundles
from eastgate.control.outbound import OutboundChange, OutboundResources
from eastgate.control.planning import Plans, is_routing
from eastgate.control.sites import ProxySite, identity_of
from eastgate.control.undecided import describe_gateway_closure, describe_inexpressible, describe_unreadable
from eastgate.engine.compiled import Program
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.gateway_filters import gateway_resources
from eastgate.envoy.config.gateway_port import gateway_port_resources
from eastgate.envoy.config.gateway_routes import (
    AuthorizerAddress,
    Leg,
    authorizer_resources,
    authorizer_service_resources,
    leg_resources,
)
from eastgate.envoy.config.inbound_port import ANY_PORT, InboundPort
from eastgate.envoy.config.outbound_capture import outbound_capture_resources
from eastgate.envoy.config.secrets import OPTIONAL_TRUST, optional_trust_secret, svid_secret, trust_secret
from eastgate.envoy.config.sidecar import inbound_resources, shared_resources
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.envoy.plan import PortPlan
from eastgate.envoy.plan.any_port import named_ports
from eastgate.envoy.server.resources import EXTENSION, ResourceKey, XdsResource
from eastgate.envoy.server.status import ProxyStatus, ResourceRejection
from eastgate.envoy.server.store import Store
from eastgate.ir.symbolic.callers import CallerCell
from eastgate.settings import McpDenials, OpenRequests

OnClosure: TypeAlias = Callable[[Closure, bool], None]
"""A function that gets a closure, and whether the port is closed now (or open again)."""


class AuthorizerSockets(NamedTuple):
    """The paths of the sockets at which gateways ask the authorizer: for decisions, and for lists of tools."""

    grpc: str
    http: str


@dataclass(frozen=True, slots=True)
class SiteChange:
    """The sites and gateways that are new or different, and the nodes that are gone."""

    sites: Mapping[str, ProxySite] = field(default_factory=dict)
    gateways: Mapping[str, GatewaySite] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.sites or self.gateways or self.removed)

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes that are new or different."""
        return frozenset({*self.sites, *self.gateways})


class Enforcement:
    """Enforces policies at sites.

    Callers without a certificate are identified by their address, where `by_address` is set, or else by their token.
    `session_key` is the secret by which gateways bind sessions to callers; control planes that serve the same gateways
    share it. With `on_demand`, the resources of a sidecar are computed from when it is first asked for (`serve`): in a
    large cluster most proxies belong to other replicas. `on_closure` is called when a port is closed or opened again,
    but not when the port or its proxy is gone.
    """

    def __init__(
        self,
        authority: Authority,
        store: Store,
        *,
        by_address: bool = False,
        tokens: TokenIdentity | None = None,
        authorizer: AuthorizerSockets | AuthorizerAddress | None = None,
        session_key: str | None = None,
        on_demand: bool = False,
        sends_logs: bool = False,
        on_closure: OnClosure | None = None,
    ) -> None:
        self.authority = authority
        self.store = store
        self._sites: dict[str, ProxySite] = {}
        self._gateways: dict[str, GatewaySite] = {}
        self._programs: dict[str, Program] = {}  # by which the resources of sidecars were computed
        self.plans = Plans(authority, self._sites, self._gateways)
        self._authorizer = authorizer
        self._sends_logs = sends_logs
        self._session_key = session_key or token_hex(32)
        self._closures = Closures()
        self._on_closure = on_closure
        self._by_address = by_address
        self.tokens = tokens
        self._secrets: dict[str, dict[str, XdsResource]] = {}
        self._shared: WeakKeyDictionary[PortPlan, tuple[XdsResource, ...]] = WeakKeyDictionary()
        self._outbound = OutboundResources()
        self._captured = CapturedResources()
        self._served: set[str] | None = set() if on_demand else None  # sidecars that were asked for; None: all are
        self._stale: dict[str, None] = {}  # proxies that know identities of before, in order
        self.changes: Counter[str] = Counter()  # how often what a proxy enforces changed, or may have
        self.rule_changes: Counter[str] = Counter()  # how often that by which it decides requests itself changed
        self._ended: dict[tuple[str, int], Counter[str]] = {}
        self._had_network_policies = False  # when proxies were looked at last

    # What changes

    def begin(
        self, authority: Authority, sites: Mapping[str, ProxySite], gateways: Mapping[str, GatewaySite] | None = None
    ) -> None:
        """Enforce an authority from now on, at these sites and gateways and no others: everything is made anew."""
        before = {*self.sites, *self.gateways}
        self.authority, self._sites, self._gateways = authority, dict(sites), dict(gateways or {})
        self.plans = Plans(authority, self._sites, self._gateways)
        self._had_network_policies = authority.programs.has_network_policies
        self._outbound.clear()
        self._captured.clear()
        for node in before - {*self.nodes}:
            self._forget(node)
        self.publish(self.nodes)

    def follow(self, sites: SiteChange, world: Change) -> frozenset[str]:
        """Enforce what has become of the authority and the sites; return the proxies that were looked at again.

        `world` is what the authority's world has changed by since the last time. The outcome is that of `begin`, at the
        cost of what has changed. Only where there are other identities than before, `renew` does the rest.
        """
        with no_collection():
            return self._follow(sites, world)

    def _follow(self, sites: SiteChange, world: Change) -> frozenset[str]:
        for node in sites.removed & {*self.nodes}:
            self._sites.pop(node, None)
            self._gateways.pop(node, None)
            self._forget(node)
        self._sites |= sites.sites
        self._gateways |= sites.gateways
        services = world.services | {
            service
            for key in {*sites.sites, *sites.removed, *world.workloads}
            for service in self.authority.world.services_of(key)
        }
        if any(changed.kind == "EndpointSlice" for changed in world.objects):
            services |= self.authority.world.services.keys()
        if self.plans.follow(world, {*sites.gateways, *sites.removed}):
            self._stale = dict.fromkeys((*self._served_sites(), *self.gateways))
        everybody = (self._by_address and bool(sites)) or self._is_between_pods()
        bound = {node: site for node, site in self.sites.items() if not site.captured}
        outbound = {
            **self._outbound.update(services, self.authority.world, bound, self.authority.settings),
            **self._update_captured(bool(sites) or bool(services) or (bool(self.gateways) and is_routing(world))),
        }
        touched = frozenset(self._touched(sites, services)) | (frozenset(self.nodes) if everybody else frozenset())
        self._publish(touched)
        for node in filter(self.serves, outbound.keys() - touched):
            self.store.update(node, put=outbound[node].put, remove=outbound[node].removed)
        return touched | outbound.keys()

    def _is_between_pods(self) -> bool:
        """Return whether sidecars enforce network policies, or did: a caller's egress where its connections arrive."""
        had, self._had_network_policies = self._had_network_policies, self.authority.programs.has_network_policies
        return self.authority.world.is_local and (had or self._had_network_policies)

    def _update_captured(self, is_other: bool) -> dict[str, OutboundChange]:
        """Look again at what pods are sent for leaving them; return what that changes for each proxy."""
        captured = {node: site for node, site in self._served_sites().items() if site.captured}
        return self._captured.update(captured, self._make_captured) if is_other else {}

    def serve(self, node: str) -> None:
        """Publish the resources of a sidecar, now and whenever they change. Without `on_demand`, all are."""
        if self._served is not None and node not in self._served:
            self._served.add(node)
            if self._has(node):
                self.publish([node])

    def release(self, nodes: Iterable[str]) -> None:
        """Note that sidecars are gone: another of that name has to be asked for again."""
        gone = self._served.intersection(nodes) if self._served is not None else frozenset[str]()
        for node in sorted(gone):
            self._programs.pop(node, None)
            self._closures.forget(node)
            self.store.forget(node)
        if self._served is not None:
            self._served -= gone

    def serves(self, node: str) -> bool:
        """Return whether the resources of a proxy are published."""
        return self._served is None or node in self._served or node in self._gateways

    def _served_sites(self) -> Mapping[str, ProxySite]:
        if self._served is None:
            return self._sites
        return {node: self._sites[node] for node in sorted(self._served) if node in self._sites}

    def renew(self, most: int | None = None) -> bool:
        """Compute the resources again of proxies that know identities of before, of so many; return whether more do.

        Until then such a proxy decides as it should about callers with a new identity, as about any caller that is not
        known by name; but it cannot yet end the connections of one of them alone.
        """
        nodes = [node for node in list(self._stale)[:most] if self._has(node)]
        self.publish(nodes)
        self._stale = dict.fromkeys(list(self._stale)[most:] if most is not None else ())
        return bool(self._stale)

    def _has(self, node: str) -> bool:
        return node in self._sites or node in self._gateways

    def _touched(self, sites: SiteChange, services: frozenset[str]) -> Iterator[str]:
        """Yield the proxies whose sites have changed, what is decided there, or what is behind a gateway."""
        yield from (*filter(self.serves, sites.sites), *sites.gateways)
        program = self.authority.programs.program
        yield from (node for node in self._served_sites() if program(node) is not self._programs.get(node))
        yield from self.plans.stale_gateways(services)

    def _forget(self, node: str) -> None:
        self._secrets.pop(node, None)
        self._programs.pop(node, None)
        self._closures.forget(node)
        self._ended = {key: ended for key, ended in self._ended.items() if key[0] != node}
        self.store.forget(node)

    @property
    def sites(self) -> Mapping[str, ProxySite]:
        """Return the proxies of workloads, by workload."""
        return self._sites

    @property
    def gateways(self) -> Mapping[str, GatewaySite]:
        """Return the gateways, by the names of their nodes."""
        return self._gateways

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of all proxies: those of workloads, and gateways."""
        return (*self.sites, *self.gateways)

    def changes_to(self, sites: Mapping[str, ProxySite], gateways: Mapping[str, GatewaySite]) -> SiteChange:
        """Return the changes after which these are all sites and gateways."""
        return SiteChange(
            {node: site for node, site in sites.items() if self._sites.get(node) != site},
            {node: site for node, site in gateways.items() if self._gateways.get(node) != site},
            frozenset({*self.nodes} - {*sites, *gateways}),
        )

    @property
    def closed(self) -> Mapping[tuple[str, int], Closure]:
        """Return the closed ports, by workload and port number."""
        return self._closures.closed

    # What proxies make of it

    def reject(self, node: str, key: ResourceKey, rejection: ResourceRejection) -> None:
        """Close the ports of a resource that a proxy has rejected."""
        if self._has(node):
            self._closures.reject(node, key, rejection)
            self.publish([node])

    def accept(self, node: str, status: Callable[[], ProxyStatus | None]) -> bool:
        """Open the ports that were closed and of which the proxy has everything now; return whether there are any."""
        if not self._has(node) or not self._closures.has_closed_ports(node):
            return False
        proxy = status()
        if proxy is not None and self._closures.forget_accepted(node, proxy.resources):
            self.publish([node])
            proxy = status()
        resources = proxy.resources if proxy is not None else ()
        states = {(resource.type_url, resource.name): resource.state for resource in resources}
        opened = self._closures.open(node, states)
        if opened:
            self.publish([node])
        return opened

    # Certificates

    def identity_of(self, node: str) -> str | None:
        """Return the identity of a proxy; None where it has none, or is gone."""
        if node in self.gateways:
            return gateway_identity(self.gateways[node].gateway, self.authority.settings)
        workload = self.authority.world.workloads.get(node)
        return identity_of(workload, self.authority.settings) if workload is not None else None

    def put_svid(self, node: str, svid: Svid) -> None:
        """Publish the SVID of a workload."""
        self._put_secret(node, svid_secret(svid.chain.encode(), svid.private_key.encode()))

    def put_trust(self, node: str, bundles: TrustBundles) -> None:
        """Publish the trust bundles with which a proxy verifies its peers."""
        self._put_secret(node, trust_secret({domain: bundles.pem(domain).encode() for domain in bundles.trust_domains}))
        if node in self.gateways:
            self._put_secret(node, optional_trust_secret(bundles.pem(bundles.own).encode()))

    def _put_secret(self, node: str, secret: XdsResource) -> None:
        self._secrets.setdefault(node, {})[secret.name] = secret
        if not self.serves(node):
            return  # a proxy that is sent its secrets and nothing else would drop all the rest
        self.store.update(node, put=[secret])
        if self._has(node) and self._closures.has_closed_ports(node):
            self.publish([node])  # it may have been this that its ports were closed for

    # Open requests

    def end_requests(self, node: str, port: int, caller: CallerCell) -> None:
        """Close the connections on which a caller makes requests at a port, and nobody else's."""
        self._ended.setdefault((node, port), Counter())[str(caller)] += 1
        self.store.put(node, self._build(node))

    # What is published

    def publish(self, nodes: Iterable[str]) -> None:
        """Compute the resources of these proxies again, and put them into the store."""
        with no_collection():
            self._publish(nodes)

    def _publish(self, nodes: Iterable[str]) -> None:
        for node in filter(self.serves, nodes):
            # What a gateway leaves to the authorizer is decided otherwise now, also where its resources are the same.
            change = self.store.put(node, self._build(node))
            if change or node in self.gateways:
                self.changes[node] += 1
            if EXTENSION in change.types:
                self.rule_changes[node] += 1

    def _build(self, node: str) -> list[XdsResource]:
        before = self._closures.at(node)
        resources = [*self._secrets.get(node, {}).values(), *self._resources(node)]
        if self._on_closure is not None:
            self._report_closures(node, before, self._on_closure)
        return resources

    def _report_closures(self, node: str, before: Mapping[int, Closure], report: OnClosure) -> None:
        after = self._closures.at(node)
        for port, closure in after.items():
            if port not in before or before[port].parts != closure.parts:
                report(closure, True)
        for port in before.keys() - after.keys():
            if port in self._ports_at(node):
                report(before[port], False)

    def _ports_at(self, node: str) -> Mapping[int, int]:
        return self.gateways[node].ports if node in self.gateways else self._ports_of(self.sites[node])

    def _resources(self, node: str) -> list[XdsResource]:
        return self._gateway_resources(node) if node in self.gateways else self._sidecar_resources(node)

    def _gateway_resources(self, node: str) -> list[XdsResource]:
        site, world = self.gateways[node], self.authority.world
        trust = [secret for secret in self._secrets.get(node, {}).values() if secret.name in (TRUST[1], OPTIONAL_TRUST)]
        published = list(self._authorizer_resources())
        legs: list[Leg] = []
        self._closures.keep(node, site.ports)
        ends_requests = self.authority.settings.open_requests is OpenRequests.END
        answers_messages = self.authority.settings.mcp_denials is McpDenials.JSON_RPC
        gateway = world.gateways[site.key]
        groups = self.plans.listeners(node)
        for port, bound in sorted(site.ports.items()):
            plan = self.plans.of_gateway(node, port)
            of_port = list(legs_of(plan, world, self.sites, self.authority.settings))
            by_destination = {leg.destination: leg for leg in of_port}
            inbound = InboundPort(
                node,
                site.address,
                port,
                bound,
                self._inbound_addresses(node),
                self.tokens,
                ends_requests,
                tuple(handshakes_of(gateway, groups[port], plan.streams, by_destination, world, whole=site.in_pod)),
                self._ended.get((node, port), Counter()),
                self.authority.settings.trust_domain,
                sends_logs=self._sends_logs,
            )
            decisive = [
                *gateway_resources(plan, self._session_key, self.tokens),
                *secrets_of(gateway, groups[port], world),
            ]
            resources = list(gateway_port_resources(inbound, plan, of_port, decisive, answers_messages))
            published += self._closures.guard(node, port, resources, trust, closing_of(inbound))
            closure = describe_gateway_closure(self.authority, node, plan, groups[port], whole=site.in_pod)
            if closure is not None and ((node, port) not in self._closures.closed or not closure.parts):
                self._closures.closed[node, port] = closure
            legs += of_port
        return [*published, *leg_resources(legs, site.source)]

    def _authorizer_resources(self) -> Iterator[XdsResource]:
        if isinstance(self._authorizer, AuthorizerAddress):
            yield from authorizer_service_resources(self._authorizer)
        elif self._authorizer is not None:
            yield from authorizer_resources(*self._authorizer)

    def _inbound_addresses(self, node: str) -> tuple[tuple[str, str], ...]:
        return self._addresses(node) if self._by_address else ()

    def _sidecar_resources(self, node: str) -> list[XdsResource]:
        site = self.sites[node]
        by_address = self._inbound_addresses(node)
        trust = [secret for secret in self._secrets.get(node, {}).values() if secret.key == TRUST]
        published: list[XdsResource] = []
        self._programs[node] = self.authority.programs.program(node)
        ports = self._ports_of(site)
        self._closures.keep(node, ports)
        ends_requests = self.authority.settings.open_requests is OpenRequests.END
        for port, bound in sorted(ports.items()):
            ended = self._ended.get((node, port), Counter())
            inbound = InboundPort(
                *(node, site.address, port, bound, by_address, self.tokens, ends_requests),
                ended=ended,
                capture=capture_of(site, port, ports),
                sends_logs=self._sends_logs,
            )
            plan = self.plans.of_sidecar(node, port)
            app = site.apps.get(port) or SocketAddress(site.address, port)
            resources = list(inbound_resources(inbound, plan, app, self._shared_resources(plan)))
            published += self._closures.guard(node, port, resources, trust, closing_of(inbound))
            points: list[Point] = [node]
            if self.authority.world.is_local:
                points.append(NetworkEnd(node, Direction.INGRESS))
            if unreadable := self.authority.rejected_at(points):
                self._closures.closed[node, port] = describe_unreadable(node, port, unreadable)
            if plan.refused is not None:
                self._closures.closed[node, port] = describe_inexpressible(node, plan, plan.refused)
        if not site.calls_out:
            return published
        if site.captured:
            return [*published, *self._captured.of(site, self._make_captured).values()]
        return [*published, *self._outbound.of(site, self.authority.world, self.sites, self.authority.settings)]

    def _ports_of(self, site: ProxySite) -> Mapping[int, int]:
        """Return the ports that a proxy answers at. In a pod these are all: those known or named by policies, and
        `ANY_PORT` for the rest, which no policy tells apart.
        """
        if not site.captured:
            return site.ports
        named = named_ports(self.authority.programs.program(site.workload).layers) or frozenset()
        return {port: port for port in {*site.ports, *named, ANY_PORT} - site.uncaptured}

    def _shared_resources(self, plan: PortPlan) -> tuple[XdsResource, ...]:
        """Return the resources that decide: the same for all workloads with the same plan."""
        resources = self._shared.get(plan)
        if resources is None:
            resources = self._shared[plan] = shared_resources(plan, self.tokens)
        return resources

    def _make_captured(self, site: ProxySite) -> Iterable[XdsResource]:
        """Return the resources for what leaves a pod."""
        gateways = {
            gateway.key: [port for port, group in self.plans.listeners(node).items() if not group.tls]
            for node, gateway in self.gateways.items()
            if gateway.in_pod
        }
        outbound = captured_outbound(self.authority.world, self.sites, self.authority.settings, gateways)
        return outbound_capture_resources(site.addresses, outbound)

    def _addresses(self, node: str) -> tuple[tuple[str, str], ...]:
        """Return address and identity of every other workload."""
        identified = (
            (site.address, identity_of(self.authority.world.workloads[key], self.authority.settings))
            for key, site in sorted(self.sites.items())
            if key != node
        )
        return tuple((address, identity) for address, identity in identified if identity is not None)
