"""Turns policies into Envoy resources: an authority and the sites of proxies in, the resources of each proxy out.

It starts no process and opens no socket: it writes into the store, which the xDS server serves. A changed policy is
compiled again for the workloads that it touches, and reaches the store only where it makes a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from secrets import token_hex
from typing import NamedTuple
from weakref import WeakKeyDictionary

from eastgate.api.authority import Authority
from eastgate.cluster.points import Point
from eastgate.cluster.targets import HostNamed
from eastgate.collection import no_collection
from eastgate.dialects import Policy
from eastgate.engine.compiled import Program
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.gateway_filters import gateway_resources
from eastgate.envoy.config.gateway_port import gateway_port_resources
from eastgate.envoy.config.gateway_routes import Leg, authorizer_resources, leg_resources
from eastgate.envoy.config.inbound_port import ANY_PORT, InboundPort
from eastgate.envoy.config.outbound_capture import outbound_capture_resources
from eastgate.envoy.config.secrets import OPTIONAL_TRUST, optional_trust_secret, svid_secret, trust_secret
from eastgate.envoy.config.sidecar import Outbound, inbound_resources, outbound_resources, shared_resources
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.envoy.plan import PortPlan, plan_port
from eastgate.envoy.plan.any_port import named_ports, plan_any_port
from eastgate.envoy.plan.gateway import GatewayPlan
from eastgate.envoy.server.resources import ResourceKey, XdsResource
from eastgate.envoy.server.status import ProxyStatus, ResourceRejection
from eastgate.envoy.server.store import Store
from eastgate.gateway import ListenerGroup
from eastgate.identity import Svid, TrustBundles
from eastgate.ir import PolicyRef
from eastgate.mesh.capturing import capture_of, captured_outbound
from eastgate.mesh.closures import TRUST, Closure, Closures, closing_of
from eastgate.mesh.gateway_tls import handshakes_of, secrets_of
from eastgate.mesh.gateways import GatewaySite, legs_of, plan_gateway, ports_of_gateway
from eastgate.mesh.sites import ProxySite, identity_of, known_identities, upstreams
from eastgate.mesh.undecided import describe_gateway_closure, describe_inexpressible, describe_unreadable
from eastgate.settings import McpDenials, OpenRequests
from eastgate.symbolic.callers import CallerCell

__all__ = ["AuthorizerSockets", "Enforcement"]


class AuthorizerSockets(NamedTuple):
    """The paths of the sockets at which gateways ask the authorizer: for decisions, and for lists of tools."""

    grpc: str
    http: str


class Enforcement:
    """Enforces policies at sites.

    Callers without a certificate are identified by their address, where `by_address` is set, or else by their token.
    """

    def __init__(
        self,
        authority: Authority,
        store: Store,
        *,
        by_address: bool = False,
        tokens: TokenIdentity | None = None,
        authorizer: AuthorizerSockets | None = None,
    ) -> None:
        self.authority = authority
        self.store = store
        self.sites: Mapping[str, ProxySite] = {}
        self.gateways: Mapping[str, GatewaySite] = {}
        self._gateway_plans: dict[tuple[str, int], GatewayPlan] = {}
        self._listener_groups: dict[str, dict[int, ListenerGroup]] = {}  # of gateways, by port
        self._authorizer = authorizer
        self._session_key = token_hex(32)
        self._closures = Closures()
        self._by_address = by_address
        self.tokens = tokens
        self._secrets: dict[str, dict[str, XdsResource]] = {}
        self._plans: WeakKeyDictionary[Program, dict[int, PortPlan]] = WeakKeyDictionary()
        self._shared: WeakKeyDictionary[PortPlan, tuple[XdsResource, ...]] = WeakKeyDictionary()
        self._outbound: dict[str, tuple[XdsResource, ...]] = {}
        self._captured: dict[frozenset[bool], tuple[XdsResource, ...]] = {}
        self._identities: frozenset[str] = frozenset()
        self.changes: Counter[str] = Counter()  # how often what a proxy enforces changed, or may have
        self._ended: dict[tuple[str, int], Counter[str]] = {}

    # What changes

    def begin(
        self, authority: Authority, sites: Mapping[str, ProxySite], gateways: Mapping[str, GatewaySite] | None = None
    ) -> None:
        """Enforce an authority from now on, at these sites and gateways and no others."""
        before = {*self.sites, *self.gateways}
        self.authority, self.sites, self.gateways = authority, sites, gateways or {}
        removed = before - {*self.nodes}
        self._gateway_plans.clear()
        self._listener_groups.clear()
        self._identities = known_identities(authority.world, authority.settings)
        self._plans.clear()
        self._outbound.clear()
        self._captured.clear()
        for node in removed:
            self._secrets.pop(node, None)
            self._closures.forget(node)
            self._ended = {key: ended for key, ended in self._ended.items() if key[0] != node}
            self.store.forget(node)
        self.publish(self.nodes)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of all proxies: those of workloads, and gateways."""
        return (*self.sites, *self.gateways)

    @property
    def closed(self) -> Mapping[tuple[str, int], Closure]:
        """Return the closed ports, by workload and port number."""
        return self._closures.closed

    def put_policy(self, policy: Policy) -> frozenset[str]:
        """Add or replace one policy; return the workloads whose proxies that concerns."""
        return self.change(put=(policy,))

    def change(self, *, put: Iterable[Policy] = (), remove: Iterable[PolicyRef] = ()) -> frozenset[str]:
        """Change some policies and publish once; return the workloads whose proxies that concerns."""
        engine = self.authority.engine
        changed = [engine.remove_policy(ref) for ref in remove] + [engine.put_policy(policy) for policy in put]
        points = frozenset[Point]().union(*changed)
        touched = frozenset(point for point in points if isinstance(point, str) and point in self.sites)
        if not all(isinstance(point, str | HostNamed) for point in points):  # no proxy of ours is asked about hosts
            self._gateway_plans.clear()
            touched |= self.gateways.keys()
        self.publish(touched)
        return touched

    # What proxies make of it

    def reject(self, node: str, key: ResourceKey, rejection: ResourceRejection) -> None:
        """Close the ports of a resource that a proxy has rejected."""
        if node in self.nodes:
            self._closures.reject(node, key, rejection)
            self.publish([node])

    def accept(self, node: str, status: Callable[[], ProxyStatus | None]) -> bool:
        """Open the ports that were closed and of which the proxy has everything now; return whether there are any."""
        if node not in self.nodes or not self._closures.has_closed_ports(node):
            return False
        proxy = status()
        if proxy is not None and self._closures.forget_accepted(node, proxy.resources):
            self.publish([node])
            proxy = status()
        resources = proxy.resources if proxy is not None else ()
        states = {(resource.type_url, resource.name): resource.state for resource in resources if resource.confirmed}
        opened = self._closures.open(node, states)
        if opened:
            self.publish([node])
        return opened

    # Certificates

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
        self.store.update(node, put=[secret])
        if node in self.nodes and self._closures.has_closed_ports(node):
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
        for node in nodes:
            # What a gateway leaves to the authorizer is decided otherwise now, also where its resources are the same.
            if self.store.put(node, self._build(node)) or node in self.gateways:
                self.changes[node] += 1

    def _build(self, node: str) -> list[XdsResource]:
        return [*self._secrets.get(node, {}).values(), *self._resources(node)]

    def _resources(self, node: str) -> list[XdsResource]:
        return self._gateway_resources(node) if node in self.gateways else self._sidecar_resources(node)

    def _gateway_resources(self, node: str) -> list[XdsResource]:
        site, world = self.gateways[node], self.authority.world
        trust = [secret for secret in self._secrets.get(node, {}).values() if secret.name in (TRUST[1], OPTIONAL_TRUST)]
        published: list[XdsResource] = list(authorizer_resources(*self._authorizer)) if self._authorizer else []
        legs: list[Leg] = []
        self._closures.keep(node, site.ports)
        ends_requests = self.authority.settings.open_requests is OpenRequests.END
        answers_messages = self.authority.settings.mcp_denials is McpDenials.JSON_RPC
        gateway = world.gateways[site.key]
        groups = self._groups_of(node)
        for port, bound in sorted(site.ports.items()):
            plan = self.gateway_plan(node, port)
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
                tuple(handshakes_of(gateway, groups[port], plan.streams, by_destination, world)),
                self._ended.get((node, port), Counter()),
                self.authority.settings.trust_domain,
            )
            decisive = [
                *gateway_resources(plan, self._session_key, self.tokens),
                *secrets_of(gateway, groups[port], world),
            ]
            resources = list(gateway_port_resources(inbound, plan, of_port, decisive, answers_messages))
            published += self._closures.guard(node, port, resources, trust, closing_of(inbound))
            closure = describe_gateway_closure(self.authority, node, plan, groups[port])
            if closure is not None and ((node, port) not in self._closures.closed or not closure.parts):
                self._closures.closed[node, port] = closure
            legs += of_port
        return [*published, *leg_resources(legs, site.address)]

    def port_plan(self, node: str, port: int) -> PortPlan:
        """Return the plan of a port, of a workload or of a gateway."""
        return self.gateway_plan(node, port).port if node in self.gateways else self.plan(node, port)

    def gateway_plan(self, node: str, port: int) -> GatewayPlan:
        """Return the plan of a gateway's port."""
        plan = self._gateway_plans.get((node, port))
        if plan is None:
            site, group = self.gateways[node], self._groups_of(node)[port]
            plan = self._gateway_plans[node, port] = plan_gateway(self.authority, site, group, self._identities)
        return plan

    def _groups_of(self, node: str) -> dict[int, ListenerGroup]:
        """Return the listeners and routes of each port of a gateway, which no policy changes."""
        groups = self._listener_groups.get(node)
        if groups is None:
            world = self.authority.world
            groups = self._listener_groups[node] = ports_of_gateway(world, world.gateways[self.gateways[node].key])
        return groups

    def _inbound_addresses(self, node: str) -> tuple[tuple[str, str], ...]:
        return self._addresses(node) if self._by_address else ()

    def _sidecar_resources(self, node: str) -> list[XdsResource]:
        site = self.sites[node]
        by_address = self._inbound_addresses(node)
        trust = [secret for secret in self._secrets.get(node, {}).values() if secret.key == TRUST]
        published: list[XdsResource] = []
        ports = self._ports_of(site)
        self._closures.keep(node, ports)
        ends_requests = self.authority.settings.open_requests is OpenRequests.END
        for port, bound in sorted(ports.items()):
            ended = self._ended.get((node, port), Counter())
            inbound = InboundPort(
                *(node, site.address, port, bound, by_address, self.tokens, ends_requests),
                ended=ended,
                capture=capture_of(site, port, ports),
            )
            plan = self.plan(node, port)
            app = site.apps.get(port) or SocketAddress(site.address, port)
            resources = list(inbound_resources(inbound, plan, app, self._shared_resources(plan)))
            published += self._closures.guard(node, port, resources, trust, closing_of(inbound))
            if unreadable := self.authority.rejected_at([node]):
                self._closures.closed[node, port] = describe_unreadable(node, port, unreadable)
            if plan.refused is not None:
                self._closures.closed[node, port] = describe_inexpressible(node, plan, plan.refused)
        return [*published, *self._outbound_resources(site)] if site.calls_out else published

    def _ports_of(self, site: ProxySite) -> Mapping[int, int]:
        """Return the ports that a proxy answers at. In a pod these are all: those known or named by policies, and
        `ANY_PORT` for the rest, which no policy tells apart.
        """
        if not site.captured:
            return site.ports
        named = named_ports(self.authority.engine.program(site.workload).layers) or frozenset()
        return {port: port for port in {*site.ports, *named, ANY_PORT} - site.uncaptured}

    def _shared_resources(self, plan: PortPlan) -> tuple[XdsResource, ...]:
        """Return the resources that decide: the same for all workloads with the same plan."""
        resources = self._shared.get(plan)
        if resources is None:
            resources = self._shared[plan] = shared_resources(plan, self.tokens)
        return resources

    def _outbound_resources(self, site: ProxySite) -> tuple[XdsResource, ...]:
        """Return the outbound resources, which no policy changes."""
        if site.captured:
            return self._captured_resources(site)
        if site.workload not in self._outbound:
            world = self.authority.world
            namespace = world.workloads[site.workload].namespace
            services = upstreams(world, self.sites, self.authority.settings, namespace)
            self._outbound[site.workload] = tuple(outbound_resources(Outbound(site.workload, site.address), services))
        return self._outbound[site.workload]

    def _captured_resources(self, site: ProxySite) -> tuple[XdsResource, ...]:
        """Return the resources for what leaves a pod: the same for all pods with addresses of the same versions."""
        families = frozenset(":" in address for address in site.addresses)
        if families not in self._captured:
            outbound = captured_outbound(self.authority.world, self.sites, self.authority.settings)
            self._captured[families] = tuple(outbound_capture_resources(site.addresses, outbound))
        return self._captured[families]

    def plan(self, node: str, port: int) -> PortPlan:
        """Return the plan of a port. Workloads of one class share their plans."""
        program = self.authority.engine.program(node)
        plans = self._plans.setdefault(program, {})
        if port not in plans:
            planned = plan_any_port if port == ANY_PORT else plan_port
            plans[port] = planned(program.layers, port, self.authority.settings, self._identities)
        return plans[port]

    def _addresses(self, node: str) -> tuple[tuple[str, str], ...]:
        """Return address and identity of every other workload."""
        identified = (
            (site.address, identity_of(self.authority.world.workloads[key], self.authority.settings))
            for key, site in sorted(self.sites.items())
            if key != node
        )
        return tuple((address, identity) for address, identity in identified if identity is not None)
