"""The nodes of proxies at which the points of a policy are enforced: sidecars of pods, and Gateways."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from eastgate.cluster import BackendNamed, GatewayNamed, RouteNamed, World
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.cluster.points import Point
from eastgate.cluster.routing.model import rules_of
from eastgate.cluster.routing.rules import every_rule
from eastgate.control.gateways import gateway_node


class GatewayPaths:
    """The declared Gateways that lead to each route and to each backend, as the world is when this is made."""

    def __init__(self, world: World) -> None:
        self._routes: dict[RouteNamed, set[GatewayNamed]] = {}
        self._backends: dict[tuple[str, str], set[GatewayNamed]] = {}
        for routed in every_rule(world):
            gateway = routed.gateway
            if gateway is None or f"{gateway.namespace}/{gateway.name}" not in world.gateways:
                continue
            self._routes.setdefault(routed.point.route, set()).add(gateway)
            for backend in rules_of(routed.route)[routed.rule].backends:
                if backend.kind in BACKEND_KINDS:
                    self._backends.setdefault((backend.namespace, backend.name), set()).add(gateway)

    def to_route(self, route: RouteNamed) -> set[GatewayNamed]:
        """Return the Gateways that lead to a route."""
        return self._routes.get(route, set())

    def to_backend(self, backend: BackendNamed) -> set[GatewayNamed]:
        """Return the Gateways that lead to a backend."""
        return self._backends.get((backend.namespace, backend.name), set())


class PathIndex(Protocol):
    """Something that knows the paths, and makes them only when they are asked for."""

    @property
    def paths(self) -> GatewayPaths: ...


def nodes_of(points: Iterable[Point], world: World, index: PathIndex) -> list[str]:
    """Return the names of the nodes at which points are enforced, sorted.

    Templates of pods, of which none exists, have no node; routes and backends are enforced at each Gateway before them.
    """
    nodes: set[str] = set()
    for point in points:
        match point:
            case str():
                workload = world.workloads.get(point)
                if workload is not None and not workload.derived:
                    nodes.add(point)
            case GatewayNamed(namespace, name):
                if f"{namespace}/{name}" in world.gateways:
                    nodes.add(gateway_node(namespace, name))
            case RouteNamed():
                nodes |= {gateway_node(*gateway[:2]) for gateway in index.paths.to_route(point)}
            case BackendNamed():
                nodes |= {gateway_node(*gateway[:2]) for gateway in index.paths.to_backend(point)}
            case _:
                continue  # no proxy of ours is asked about hosts, and none applies what the network does
    return sorted(nodes)
