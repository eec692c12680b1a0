"""What is enforced where at a gateway: by its Envoy, by the authorizer, or not at all, because a route is closed."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import Gateway
from eastgate.cluster.points import DeadEnd
from eastgate.cluster.routing import ListenerGroup, RoutingTable
from eastgate.cluster.targets import GatewayNamed
from eastgate.envoy.plan.enforcers import Enforcer, LayerEnforcement, enforcement_at_gateway
from eastgate.envoy.plan.gateway import GatewayDestination
from eastgate.envoy.plan.gateway_planner import plan_destinations
from eastgate.reports.cluster import Cluster, effects_of
from eastgate.reports.describe.model import DescribedField, list_field

_ENFORCERS = {
    Enforcer.ENVOY: "by the gateway's Envoy",
    Enforcer.AUTHORIZER: "by the authorizer",
    Enforcer.BOTH: "by the gateway's Envoy, and by the authorizer where rules ask",
}


def enforcement_field(cluster: Cluster, gateway: Gateway) -> DescribedField:
    """List each destination of a gateway, with who enforces the policies on the way to it."""
    data: list[dict[str, object]] = []
    lines: list[str] = []
    groups = RoutingTable.of(cluster.authority.world, gateway).groups
    for group in groups:
        indent = "  " if len(groups) > 1 else ""
        entries = list(_entries(cluster, gateway, group))
        if len(groups) > 1:
            lines.append(f"port {group.port}:")
        for entry, texts in entries:
            data.append({"port": group.port, **entry})
            lines += [f"{indent}{text}" for text in texts]
    return list_field("enforcement", "Enforcement", data, lines)


def _entries(cluster: Cluster, gateway: Gateway, group: ListenerGroup) -> Iterator[tuple[dict[str, object], list[str]]]:
    named, authority = GatewayNamed(gateway.namespace, gateway.name), cluster.authority
    destinations = plan_destinations(named, group, cluster.layers, authority.world, authority.settings)
    seen: set[str] = set()
    for destination in destinations.values():
        if destination.title not in seen and destination.routed is not None:
            seen.add(destination.title)
            yield _entry(cluster, destination, group.port)
    for host in group.streams():
        for candidate in host.candidates[:1]:
            route = candidate.routed.route
            title = f"{route.kind} {route.namespace}/{route.name} {host.hostname or '*'}"
            words = "TLS is passed through: what policies cannot allow without a look at caller and request is closed"
            entry: dict[str, object] = {"route": route.key, "rule": candidate.routed.rule, "to": None}
            yield {**entry, "closed": [], "passedThrough": True, "layers": []}, [title, f"  {words}"]


def _entry(cluster: Cluster, destination: GatewayDestination, port: int) -> tuple[dict[str, object], list[str]]:
    routed, backend, end = destination.routed, destination.backend, destination.points[-1]
    closed = [*destination.unsupported, *([str(end)] if isinstance(end, DeadEnd) else [])]
    layers: list[dict[str, object]] = []
    lines = [destination.title]
    if destination.unsupported:
        lines.append(f"  closed: the gateway cannot do all that it says: {', '.join(destination.unsupported)}")
    elif closed:
        lines.append(f"  closed: {closed[0]}")
    for point in destination.points:
        for layer in cluster.layers(point) if not isinstance(point, DeadEnd) else ():
            enforced = enforcement_at_gateway(layer, port, destination.backend_key)
            policies = sorted(map(str, effects_of([layer]).enforced))
            layers.append(
                {
                    "layer": layer.name,
                    "at": str(point),
                    "policies": policies,
                    "enforcedBy": enforced.enforcer.value,
                    "reason": enforced.reason,
                    "asks": list(enforced.asked),
                }
            )
            lines.append(f"  {layer.name}  {_describe(enforced)}")
            lines += [f"    {policy}" for policy in policies]
    entry: dict[str, object] = {
        "route": routed.route.key if routed is not None else None,
        "rule": routed.rule if routed is not None else None,
        "to": f"{backend.kind}/{backend.namespace}/{backend.name}" if backend is not None else None,
        "closed": closed,
        "passedThrough": False,
        "layers": layers,
    }
    return entry, lines


def _describe(enforced: LayerEnforcement) -> str:
    because = f" ({enforced.reason})" if enforced.reason is not None else ""
    asks = f": {', '.join(enforced.asked)}" if enforced.asked else ""
    return f"{_ENFORCERS[enforced.enforcer]}{because}{asks}"
