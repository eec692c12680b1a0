"""The resources of node proxies and waypoints, which serve several workloads each.

A waypoint decides everything that a sidecar would decide, and states the caller to the node proxy of the pod. The node
proxy decides again about the connection, by the layers that need no HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from eastgate.authority.authority import Authority, programs_of
from eastgate.control.closures import TRUST, closing_of, describe_inexpressible, describe_unreadable
from eastgate.control.fleet import Fleet
from eastgate.control.sites import identity_of
from eastgate.envoy.config.clusters import SocketAddress, TunnelEnd, every_authority
from eastgate.envoy.config.hbone import (
    CallerStatement,
    Tunnelled,
    TunnelPort,
    pod_port_resources,
    tunnel_port_resources,
    waypoint_port_resources,
)
from eastgate.envoy.config.sidecar import shared_resources
from eastgate.envoy.plan import PortPlan
from eastgate.envoy.server.resources import XdsResource
from eastgate.ir import is_network


def waypoint_name(namespace: str) -> str:
    """Return the name of the proxy that is the waypoint of a namespace. No workload can have it."""
    return f"waypoint:{namespace}"


def needs_waypoint(authority: Authority, workload: str) -> bool:
    """Return whether a policy decides there what only a proxy that reads HTTP can."""
    return any(not is_network(layer) for layer in programs_of(authority).program(workload).layers)


class AmbientResources:
    """Makes the resources of node proxies and waypoints."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def of_pod(self, workload: str) -> Iterator[XdsResource]:
        """Yield what a node proxy gets for one of its pods."""
        fleet = self._fleet
        site = fleet.sites[workload]
        fleet.closures.keep(workload, site.ports)
        tunnelled = []
        waypoint = site.waypoint
        for port, bound in sorted(site.ports.items()):
            inbound = fleet.inbound(
                workload, site, port, bound, shared=True, waypoint=waypoint.identity if waypoint is not None else None
            )
            (called,) = every_authority([site.address], bound)
            end = None
            if waypoint is not None:
                end = TunnelEnd(called, waypoint.address, waypoint.identity)
            plan = fleet.plans.of_node_proxy(workload, port)
            app = site.apps.get(port) or SocketAddress(site.address, port)
            shared = _shared(plan, inbound.name, fleet)
            resources = list(pod_port_resources(inbound, plan, app, shared, end))
            trust = fleet.secrets_of(site.proxy, TRUST)
            yield from fleet.closures.guard(workload, port, resources, trust, closing_of(inbound))
            self._close(workload, workload, port, plan)
            tunnelled.append(Tunnelled((called,), f"tunnelled/{inbound.name}"))
        statements = (CallerStatement(waypoint.identity, of_anyone=True),) if waypoint is not None else ()
        address = SocketAddress(site.address, site.tunnel)
        yield from tunnel_port_resources(
            TunnelPort(
                workload,
                address,
                f"svid/{workload}",
                tuple(tunnelled),
                statements,
                takes_peers=waypoint is None,
            )
        )

    def of_waypoint(self, name: str) -> Iterator[XdsResource]:
        """Yield what a waypoint gets."""
        fleet = self._fleet
        served = fleet.waypoints[name]
        secret = f"svid/{name}"
        tunnelled, statements = [], []
        for workload in served.workloads:
            site = fleet.sites[workload]
            unit = unit_at(name, workload)
            fleet.closures.keep(unit, site.ports)
            for port, bound in sorted(site.ports.items()):
                inbound = fleet.inbound(workload, site, port, bound, shared=True, at_waypoint=True)
                plan = fleet.plans.of_sidecar(workload, port)
                (called,) = every_authority([site.address], bound)
                identity = identity_of(fleet.authority.world.workloads[workload], fleet.authority.settings)
                end = TunnelEnd(called, SocketAddress(site.address, site.tunnel), str(identity))
                shared = _shared(plan, inbound.name, fleet)
                resources = list(waypoint_port_resources(inbound, plan, end, secret, shared))
                trust = fleet.secrets_of(name, TRUST)
                yield from fleet.closures.guard(unit, port, resources, trust, closing_of(inbound))
                self._close(unit, workload, port, plan)
                tunnelled.append(Tunnelled((called,), f"tunnelled/{inbound.name}"))
                statements.append(CallerStatement(end.identity, site.address, (called,), of_anyone=fleet.by_address))
        address = served.waypoint.address
        yield from tunnel_port_resources(TunnelPort(name, address, secret, tuple(tunnelled), tuple(statements)))

    def _close(self, unit: str, workload: str, port: int, plan: PortPlan) -> None:
        """Note that a port is closed because its policies cannot be read or enforced."""
        closures = self._fleet.closures
        if unreadable := self._fleet.authority.rejected_at(self._fleet.points_at(workload)):
            closures.closed[unit, port] = describe_unreadable(workload, port, unreadable)
        if plan.refused is not None:
            closures.closed[unit, port] = describe_inexpressible(workload, plan, plan.refused)


def unit_at(waypoint: str, workload: str) -> str:
    """Return the name of what a waypoint enforces for a workload."""
    return f"{workload} at {waypoint}"


@lru_cache(maxsize=4096)
def _shared(plan: PortPlan, name: str, fleet: Fleet) -> tuple[XdsResource, ...]:
    return shared_resources(plan, fleet.tokens, name)


def units_of(proxy: str, fleet: Fleet) -> Iterable[str]:
    """Return all that a proxy enforces apart: its workloads, or itself."""
    if proxy in fleet.waypoints:
        return [unit_at(proxy, workload) for workload in fleet.waypoints[proxy].workloads]
    shared = [key for key, site in fleet.sites.items() if site.node == proxy]
    return shared or [proxy]
