"""The resources of sidecars: what decides at the ports of workloads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from weakref import WeakKeyDictionary

from eastgate.cluster.points import Direction, NetworkEnd, Point
from eastgate.control.capturing import capture_of
from eastgate.control.closures import TRUST, closing_of
from eastgate.control.fleet import Fleet
from eastgate.control.sites import ProxySite
from eastgate.control.undecided import describe_inexpressible, describe_unreadable
from eastgate.engine.compiled import Program
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.inbound_port import ANY_PORT
from eastgate.envoy.config.sidecar import inbound_resources, shared_resources
from eastgate.envoy.plan import PortPlan
from eastgate.envoy.plan.any_port import named_ports
from eastgate.envoy.server.resources import XdsResource


class SidecarResources:
    """Makes the resources of the sidecars of a fleet, and notes by which programs it made them."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._programs: dict[str, Program] = {}
        self._shared: WeakKeyDictionary[PortPlan, tuple[XdsResource, ...]] = WeakKeyDictionary()

    def forget(self, node: str) -> None:
        """Forget a sidecar that is gone, or that does not ask any more."""
        self._programs.pop(node, None)

    def stale(self, points: Collection[Point]) -> Iterator[str]:
        """Yield the sidecars, of those that may decide otherwise now, that do."""
        program = self._fleet.authority.programs.program
        for point in points:
            if isinstance(point, str) and point in self._fleet.sites:
                before = self._programs.get(point)
                if before is not None and program(point) is not before:
                    yield point

    def ports_of(self, site: ProxySite) -> Mapping[int, int]:
        """Return the ports that a proxy answers at. In a pod these are all: those known or named by policies, and
        `ANY_PORT` for the rest, which no policy tells apart.
        """
        if not site.captured:
            return site.ports
        named = named_ports(self._fleet.authority.programs.program(site.workload).layers) or frozenset()
        return {port: port for port in {*site.ports, *named, ANY_PORT} - site.uncaptured}

    def inbound(self, node: str) -> Iterator[XdsResource]:
        """Yield what a sidecar gets for its ports, and note which of them are closed."""
        fleet, authority, closures = self._fleet, self._fleet.authority, self._fleet.closures
        site = fleet.sites[node]
        trust = fleet.secrets_of(node, TRUST)
        self._programs[node] = authority.programs.program(node)
        ports = self.ports_of(site)
        closures.keep(node, ports)
        for port, bound in sorted(ports.items()):
            inbound = fleet.inbound(node, site, port, bound, capture=capture_of(site, port, ports))
            plan = fleet.plans.of_sidecar(node, port)
            app = site.apps.get(port) or SocketAddress(site.address, port)
            resources = list(inbound_resources(inbound, plan, app, self._shared_resources(plan)))
            yield from closures.guard(node, port, resources, trust, closing_of(inbound))
            points: list[Point] = [node]
            if authority.world.is_local:
                points.append(NetworkEnd(node, Direction.INGRESS))
            if unreadable := authority.rejected_at(points):
                closures.closed[node, port] = describe_unreadable(node, port, unreadable)
            if plan.refused is not None:
                closures.closed[node, port] = describe_inexpressible(node, plan, plan.refused)

    def _shared_resources(self, plan: PortPlan) -> tuple[XdsResource, ...]:
        """Return the resources that decide: the same for all workloads with the same plan."""
        resources = self._shared.get(plan)
        if resources is None:
            resources = self._shared[plan] = shared_resources(plan, self._fleet.tokens)
        return resources
