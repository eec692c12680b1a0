"""The plans of all ports, which describe the decisions of proxies.

A plan is made on first use, and again after a change of its inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final
from weakref import WeakKeyDictionary

from eastgate.authority.authority import Authority, programs_of
from eastgate.basics.records import dataclass
from eastgate.cluster import Change
from eastgate.cluster.pods import CONTROLLER_KINDS
from eastgate.cluster.points import Point
from eastgate.cluster.routing import ListenerGroup
from eastgate.control.gateway_nodes import ports_of_gateway
from eastgate.control.gateways import GatewaySite, plan_gateway, services_behind
from eastgate.control.network import NetworkDecisions
from eastgate.control.sites import KnownIdentities, ProxySite
from eastgate.engine.compiled import Program
from eastgate.envoy.config.inbound_port import ANY_PORT
from eastgate.envoy.plan import PortPlan, plan_port
from eastgate.envoy.plan.gateway import GatewayDestination, GatewayPlan
from eastgate.envoy.plan.ports import plan_any_port
from eastgate.ir import is_network

_NOT_ROUTING: Final = frozenset(
    {"Pod", "EndpointSlice", "ExternalWorkload", "Node", "ServiceAccount", *CONTROLLER_KINDS}
)


def is_routing(change: Change) -> bool:
    """Return whether an object changed on which a route, a listener or a grant may depend."""
    return any(changed.kind not in _NOT_ROUTING for changed in change.objects)


@dataclass(frozen=True, slots=True)
class _CachedPlan:
    """The plan of a gateway's port, the programs that it depends on, and the Services behind it."""

    plan: GatewayPlan
    programs: Mapping[Point, Program]
    services: frozenset[str]


class Plans:
    """The plans of the ports at these sites and gateways. Both may change between calls of `follow`."""

    def __init__(
        self, authority: Authority, sites: Mapping[str, ProxySite], gateways: Mapping[str, GatewaySite]
    ) -> None:
        self._authority = authority
        self._sites = sites
        self._gateways = gateways
        self._identities = KnownIdentities(authority.world, authority.settings)
        self._of_programs: WeakKeyDictionary[Program, dict[tuple[int, bool], PortPlan]] = WeakKeyDictionary()
        self._of_gateways: dict[tuple[str, int], _CachedPlan] = {}
        self._listeners: dict[str, dict[int, ListenerGroup]] = {}  # of gateways, by port
        self._network: NetworkDecisions | None = None

    def follow(self, change: Change, gateways: Collection[str]) -> bool:
        """Forget the plans that a change of the world, or of these gateways, made stale; return whether identities
        changed.
        """
        self._of_gateways = {key: cached for key, cached in self._of_gateways.items() if key[0] not in gateways}
        for node in gateways:
            self._listeners.pop(node, None)
        has_others = self._identities.update(change)
        if has_others:
            self._of_programs.clear()
        if has_others or is_routing(change):
            self._of_gateways.clear()
            self._listeners.clear()
        return has_others

    def stale_gateways(self, services: Collection[str]) -> Iterator[str]:
        """Yield the gateways whose plans are stale, and the gateways in front of these Services."""
        program = programs_of(self._authority).program
        for (node, port), cached in list(self._of_gateways.items()):
            if any(program(point) is not before for point, before in cached.programs.items()):
                del self._of_gateways[node, port]
            elif not cached.services.isdisjoint(services):
                yield node
        for node, site in self._gateways.items():
            if any((node, port) not in self._of_gateways for port in site.ports):
                yield node

    def of_port(self, node: str, port: int) -> PortPlan:
        """Return the plan of a port of a workload or of a gateway."""
        return self.of_gateway(node, port).port if node in self._gateways else self.of_sidecar(node, port)

    def of_gateway(self, node: str, port: int) -> GatewayPlan:
        """Return the plan of a gateway's port."""
        cached = self._of_gateways.get((node, port))
        if cached is None:
            site, group = self._gateways[node], self.listeners(node)[port]
            programs: dict[Point, Program] = {}
            plan = plan_gateway(self._authority, site, group, self._identities.all, programs)
            services = frozenset(services_behind(plan, self._authority.world))
            cached = self._of_gateways[node, port] = _CachedPlan(plan, programs, services)
        return cached.plan

    def find_destination(self, node: str, port: int, destination: str) -> GatewayDestination | None:
        """Return the destination of a gateway's port by its id, or None if it no longer exists."""
        site = self._gateways.get(node)
        if site is None or port not in site.ports:
            return None
        return self.of_gateway(node, port).by_id.get(destination)

    def listeners(self, node: str) -> dict[int, ListenerGroup]:
        """Return the listeners and routes of each port of a gateway. They do not depend on policies."""
        groups = self._listeners.get(node)
        if groups is None:
            world = self._authority.world
            groups = self._listeners[node] = ports_of_gateway(world, world.gateways[self._gateways[node].key])
        return groups

    def of_sidecar(self, node: str, port: int) -> PortPlan:
        """Return the plan of a workload's port. Workloads with the same program share plans."""
        return self._of_workload(node, port, reads_http=True)

    def of_node_proxy(self, workload: str, port: int) -> PortPlan:
        """Return the plan of a workload's port without the rules that need HTTP: a waypoint enforces these."""
        return self._of_workload(workload, port, reads_http=False)

    def _of_workload(self, node: str, port: int, *, reads_http: bool) -> PortPlan:
        program = programs_of(self._authority).program(node)
        layers = tuple(layer for layer in program.layers if reads_http or is_network(layer))
        network = self._network_decisions()
        if network is not None:
            return network.plan(node, port, layers, self._identities.all)
        plans = self._of_programs.setdefault(program, {})
        if (port, reads_http) not in plans:
            planned = plan_any_port if port == ANY_PORT else plan_port
            plans[port, reads_http] = planned(layers, port, self._authority.settings, self._identities.all)
        return plans[port, reads_http]

    def _network_decisions(self) -> NetworkDecisions | None:
        """Return the decisions of network policies, or None if the network enforces them or there are none."""
        engine = programs_of(self._authority)
        if not self._authority.world.is_local or not engine.has_network_policies:
            return None
        if self._network is None or self._network.version != engine.version:
            self._network = NetworkDecisions(self._authority, self._sites, self._gateways)
        return self._network
