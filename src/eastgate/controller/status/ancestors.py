"""The ancestors of a policy: the subjects of the entries in its status (GEP-713).

An entry is about a target of the policy. The pods of a selector are too many for a list of 16. So their entry is about
the mesh (XMesh) if the cluster has that object, and else about their namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from eastgate.basics.records import dataclass
from eastgate.cluster import GATEWAY_GROUP, World
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.cluster.points import Point
from eastgate.cluster.routing.model import rules_of
from eastgate.cluster.routing.rules import every_rule
from eastgate.cluster.targets import (
    BackendNamed,
    Everything,
    ExternalsMatching,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    RouteNamed,
    RulesOfGateway,
    RulesOfRoute,
    Target,
)
from eastgate.control.gateway_nodes import gateway_node
from eastgate.ir import PolicyRef

# The nodes of proxies that enforce the points of a policy: sidecars of pods, and Gateways.


class GatewayPaths:
    """The declared Gateways in front of each route and each backend, in the state of the world at creation."""

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
        """Return the Gateways in front of a route."""
        return self._routes.get(route, set())

    def to_backend(self, backend: BackendNamed) -> set[GatewayNamed]:
        """Return the Gateways in front of a backend."""
        return self._backends.get((backend.namespace, backend.name), set())


class PathIndex(Protocol):
    """An index of paths, which is built on first use."""

    @property
    def paths(self) -> GatewayPaths: ...


def nodes_of(points: Iterable[Point], world: World, index: PathIndex) -> list[str]:
    """Return the names of the nodes that enforce these points, sorted.

    Pod templates without pods have no node. Each Gateway in front of a route or a backend enforces its policies.
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
                continue  # proxies of Eastgate do not enforce policies for hosts or for the network
    return sorted(nodes)


_MESH_GROUP = "gateway.networking.x-k8s.io"


@dataclass(frozen=True, slots=True)
class AncestorRef:
    """A reference to an ancestor, with the defaults of Gateway API. Some kinds have no namespace."""

    group: str
    kind: str
    name: str
    namespace: str | None = None
    section: str | None = None
    port: int | None = None

    @classmethod
    def read(cls, ref: Mapping[str, Any], home: str | None) -> AncestorRef:
        """Read a reference in the status of an object in the namespace `home`."""
        group, kind = ref.get("group", GATEWAY_GROUP), ref.get("kind", "Gateway")
        is_in_cluster = (group, kind) in _CLUSTER_SCOPED
        return cls(
            group,
            kind,
            ref.get("name", ""),
            None if is_in_cluster else ref.get("namespace", home),
            ref.get("sectionName"),
            ref.get("port"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the reference as JSON data without unset fields."""
        written = {
            "group": self.group,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "sectionName": self.section,
            "port": self.port,
        }
        return {name: value for name, value in written.items() if value is not None}

    def __str__(self) -> str:
        name = self.name if self.namespace is None else f"{self.namespace}/{self.name}"
        return f"{self.kind} {name}"


_CLUSTER_SCOPED = frozenset({("", "Namespace"), (_MESH_GROUP, "XMesh")})


@dataclass(frozen=True, slots=True)
class AncestorTargets:
    """An ancestor, and the targets of a policy that it covers."""

    ancestor: AncestorRef
    targets: tuple[Target, ...]


def ancestors_of(
    ref: PolicyRef, targets: Sequence[Target], world: World, mesh: str | None = None
) -> list[AncestorTargets]:
    """Return the ancestors of a policy, each once. `mesh` is the name of the XMesh of the cluster."""
    by_ancestor: dict[AncestorRef, list[Target]] = {}
    for target in targets:
        by_ancestor.setdefault(_ancestor(target, ref, world, mesh), []).append(target)
    if not targets:  # its targets cannot be read
        by_ancestor[_home(ref.namespace, mesh)] = []
    return [AncestorTargets(ancestor, tuple(own)) for ancestor, own in by_ancestor.items()]


def _ancestor(target: Target, ref: PolicyRef, world: World, mesh: str | None) -> AncestorRef:
    match target:
        case PodsOfService(namespace, service):
            return AncestorRef("", "Service", service, namespace)
        case GatewayNamed(namespace, name):
            return AncestorRef(GATEWAY_GROUP, "Gateway", name, namespace)
        case RulesOfGateway(namespace, name, listener):
            return AncestorRef(GATEWAY_GROUP, "Gateway", name, namespace, listener)
        case RouteNamed(namespace, name, kind):
            return AncestorRef(GATEWAY_GROUP, kind, name, namespace)
        case RulesOfRoute(namespace, name, kind, rule):
            return AncestorRef(GATEWAY_GROUP, kind, name, namespace, rule)
        case BackendNamed(namespace, name):
            backend = world.backends.get(f"{namespace}/{name}")
            group = backend.group if backend is not None else ref.group
            kind = backend.kind if backend is not None else "XBackend" if ref.kind.startswith("X") else "Backend"
            return AncestorRef(group, kind, name, namespace)
        case PodsMatching(namespace) | PodsOfAccount(namespace) | PodNamed(namespace) | ExternalsMatching(namespace):
            return _home(namespace, mesh)
        case PodsOwnedBy(namespace) | Everything(namespace) | GatewaysMatching(namespace):
            return _home(namespace or ref.namespace, mesh)
        case PodsAcross() | HostNamed():
            return _home(ref.namespace, mesh)


def _home(namespace: str | None, mesh: str | None) -> AncestorRef:
    if mesh is not None:
        return AncestorRef(_MESH_GROUP, "XMesh", mesh)
    return AncestorRef("", "Namespace", namespace or "default")
