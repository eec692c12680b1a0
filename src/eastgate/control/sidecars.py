"""The resources of sidecars: what decides at the ports of workloads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from weakref import WeakKeyDictionary

from eastgate.authority.authority import programs_of
from eastgate.cluster.points import Point
from eastgate.control.capturing import capture_of
from eastgate.control.closures import TRUST, closing_of, describe_inexpressible, describe_unreadable
from eastgate.control.fleet import Fleet
from eastgate.control.sites import ProxySite
from eastgate.engine.compiled import Program
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.inbound_port import ANY_PORT
from eastgate.envoy.config.sidecar import inbound_resources, shared_resources
from eastgate.envoy.plan import PortPlan
from eastgate.envoy.plan.ports import named_ports
from eastgate.envoy.server.resources import XdsResource


class SidecarResources:
    """Makes the resources of the sidecars of a fleet, and records the program of each."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._programs: dict[str, Program] = {}
        self._shared: WeakKeyDictionary[PortPlan, tuple[XdsResource, ...]] = WeakKeyDictionary()

    def forget(self, node: str) -> None:
        """Forget a sidecar that is gone, or that is no longer served."""
        self._programs.pop(node, None)

    def stale(self, points: Collection[Point]) -> Iterator[str]:
        """Yield the sidecars at these points whose program has changed."""
        program = programs_of(self._fleet.authority).program
        for point in points:
            if isinstance(point, str) and point in self._fleet.sites:
                before = self._programs.get(point)
                if before is not None and program(point) is not before:
                    yield point

    def ports_of(self, site: ProxySite) -> Mapping[int, int]:
        """Return the ports at which a proxy answers. In a pod these are all ports: each known port, each port in a
        policy, and `ANY_PORT` for the rest, which no policy distinguishes.
        """
        if not site.captured:
            return site.ports
        named = named_ports(programs_of(self._fleet.authority).program(site.workload).layers) or frozenset()
        return {port: port for port in {*site.ports, *named, ANY_PORT} - site.uncaptured}

    def note(self, node: str) -> None:
        """Note by which program the resources of a workload are made."""
        self._programs[node] = programs_of(self._fleet.authority).program(node)

    def inbound(self, node: str) -> Iterator[XdsResource]:
        """Yield the resources for the ports of a sidecar, and record which ports are closed."""
        fleet, authority, closures = self._fleet, self._fleet.authority, self._fleet.closures
        site = fleet.sites[node]
        trust = fleet.secrets_of(node, TRUST)
        self.note(node)
        ports = self.ports_of(site)
        closures.keep(node, ports)
        for port, bound in sorted(ports.items()):
            inbound = fleet.inbound(node, site, port, bound, capture=capture_of(site, port, ports))
            plan = fleet.plans.of_sidecar(node, port)
            app = site.apps.get(port) or SocketAddress(site.address, port)
            resources = list(inbound_resources(inbound, plan, app, self._shared_resources(plan)))
            yield from closures.guard(node, port, resources, trust, closing_of(inbound))
            if unreadable := authority.rejected_at(fleet.points_at(node)):
                closures.closed[node, port] = describe_unreadable(node, port, unreadable)
            if plan.refused is not None:
                closures.closed[node, port] = describe_inexpressible(node, plan, plan.refused)

    def _shared_resources(self, plan: PortPlan) -> tuple[XdsResource, ...]:
        """Return the resources that decide, shared by all workloads with the same plan."""
        resources = self._shared.get(plan)
        if resources is None:
            resources = self._shared[plan] = shared_resources(plan, self._fleet.tokens)
        return resources
