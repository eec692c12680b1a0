"""`describe gateway`, `route` and `backend`: listeners, ways through them, and who may take which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eastgate.cluster import Backend, Gateway, GrpcMatch, Route, RouteMatch, StreamRule
from eastgate.cluster.points import NamedPoint, RuleNamed
from eastgate.cluster.routing.attachment import attached_routes, distinct_listeners
from eastgate.cluster.routing.journey import Way, through_gateway, through_route
from eastgate.cluster.routing.model import rules_of
from eastgate.cluster.targets import BackendNamed, GatewayNamed, RouteNamed
from eastgate.dialects import Policy
from eastgate.ir import Request
from eastgate.reports.cluster import Cluster
from eastgate.reports.columns import columns
from eastgate.reports.describe.effective_policies import effective_policies_field
from eastgate.reports.describe.findings import findings_field
from eastgate.reports.describe.gateway_enforcement import enforcement_field
from eastgate.reports.describe.model import DescribedField, Description, list_field, value_field
from eastgate.reports.describe.tables import inherited_field, points_field, span_data
from eastgate.reports.describe.ways import ways_field

_ANY = Request({})


def describe_gateway(cluster: Cluster, gateway: Gateway) -> Description:
    """Describe a Gateway, and the routes and backends behind it."""
    world = cluster.authority.world
    point = GatewayNamed(gateway.namespace, gateway.name)

    is_guarded = cluster.authority.programs.is_guarded

    def ways_of(request: Request) -> list[Way]:
        return list(through_gateway(gateway, request, world, is_guarded=is_guarded))

    ways = ways_of(_ANY)
    rules = [rule for rule in cluster.rules if rule.gateway == point]
    routes = {
        route.key: route
        for listener in distinct_listeners(gateway)
        for route in attached_routes(world, gateway, listener)
    }
    listeners = [
        {
            "name": listener.name,
            "port": listener.port,
            "protocol": listener.protocol,
            "hostname": listener.hostname,
            "routes": [route.key for route in attached_routes(world, gateway, listener)],
        }
        for listener in gateway.listeners
    ]
    rows = [
        [[str(listener["name"])], [f"{listener['protocol']} {listener['port']}"], [str(listener["hostname"] or "*")]]
        for listener in listeners
    ]
    return Description(
        (
            value_field("kind", "Kind", "Gateway"),
            value_field("name", "Name", gateway.name),
            value_field("namespace", "Namespace", gateway.namespace),
            value_field("class", "Class", gateway.gateway_class or None),
            list_field("listeners", "Listeners", listeners, columns(None, rows)),
            list_field(
                "routes", "Routes", sorted(routes), [line for route in routes.values() for line in _route_lines(route)]
            ),
            inherited_field(cluster, _attached(cluster, [point, *rules])),
            _policies(cluster, [point, *_points(ways)], rules),
            effective_policies_field(cluster, rules),
            enforcement_field(cluster, gateway),
            ways_field(cluster, ways, ways_of),
            findings_field(cluster, {f"Gateway/{gateway.key}"}),
            DescribedField("source", "Source", span_data(gateway.span), ()),
        ),
        (point, *_points(ways)),
    )


def describe_route(cluster: Cluster, route: Route) -> Description:
    point = RouteNamed(route.namespace, route.name, route.kind)
    is_routed = route.kind != "TCPRoute"
    world, is_guarded = cluster.authority.world, cluster.authority.programs.is_guarded

    def ways_of(request: Request) -> list[Way]:
        return list(through_route(route, request, world, is_guarded=is_guarded)) if is_routed else []

    ways = ways_of(_ANY)
    rules = [rule for rule in cluster.rules if rule.route == point]
    parents = [
        {
            "kind": parent.kind,
            "namespace": parent.namespace,
            "name": parent.name,
            "section": parent.section_name,
            "port": parent.port,
        }
        for parent in route.parents
    ]
    return Description(
        (
            value_field("kind", "Kind", route.kind),
            value_field("name", "Name", route.name),
            value_field("namespace", "Namespace", route.namespace),
            value_field("hostnames", "Hostnames", list(route.hostnames), ", ".join(route.hostnames) or "*"),
            list_field(
                "parents",
                "Parents",
                parents,
                [f"{parent.kind} {parent.namespace}/{parent.name}" for parent in route.parents],
            ),
            list_field("rules", "Rules", list(_route_lines(route)), _route_lines(route)),
            inherited_field(cluster, _attached(cluster, [point, *rules]) if is_routed else []),
            _policies(cluster, [*([point] if is_routed else []), *_points(ways)], rules),
            effective_policies_field(cluster, rules),
            ways_field(cluster, ways, ways_of),
            findings_field(cluster, {route.key}),
            DescribedField("source", "Source", span_data(route.span), ()),
        ),
        (*([point] if is_routed else []), *_points(ways)),
    )


def describe_backend(cluster: Cluster, backend: Backend) -> Description:
    point = BackendNamed(backend.namespace, backend.name)
    leading = sorted(
        route.key
        for route in cluster.authority.world.routes.values()
        for rule in rules_of(route)
        for ref in rule.backends
        if (ref.kind, ref.namespace, ref.name) == (backend.kind, backend.namespace, backend.name)
    )
    to = f"Service {backend.service_name}" if backend.service_name else f"host {backend.hostname}"
    destination = {
        "service": backend.service_name,
        "hostname": backend.hostname,
        "port": backend.port,
        "path": backend.path,
    }
    way = Way("the backend alone", (point,), backend.key)
    return Description(
        (
            value_field("kind", "Kind", backend.kind),
            value_field("name", "Name", backend.name),
            value_field("namespace", "Namespace", backend.namespace),
            value_field("destination", "Destination", destination, f"{to}, port {backend.port}, path {backend.path}"),
            list_field("routes", "Routes", leading, leading),
            inherited_field(cluster, cluster.attached(point)),
            _policies(cluster, [point]),
            ways_field(cluster, [way], lambda _request: [way]),
            findings_field(cluster, {f"{backend.kind}/{backend.key}"}),
            DescribedField("source", "Source", span_data(backend.span), ()),
        ),
        (point,),
    )


def _route_lines(route: Route) -> list[str]:
    lines = [f"{route.kind} {route.namespace}/{route.name}  {', '.join(route.hostnames) or '*'}"]
    for rule in rules_of(route):
        matches = ", ".join(_match_text(match) for match in rule.matches) if not isinstance(rule, StreamRule) else ""
        to = ", ".join(f"{backend.kind} {backend.namespace}/{backend.name}" for backend in rule.backends)
        lines.append(f"  {matches or 'all'} -> {to or ('redirect' if rule.redirects else 'no backend')}")
    return lines


def _match_text(match: RouteMatch | GrpcMatch) -> str:
    if isinstance(match, RouteMatch):
        return f"{match.method + ' ' if match.method else ''}{match.path.type} {match.path.value}"
    return f"{'RegularExpression ' if match.regex else ''}{match.service or '*'}/{match.method or '*'}"


def _points(ways: Iterable[Way]) -> list[NamedPoint]:
    """Return the points of enforcement on some ways, each once, gateways first."""
    points = dict.fromkeys(point for way in ways for point in way.points if isinstance(point, NamedPoint))
    order = (GatewayNamed, RouteNamed, BackendNamed)
    return sorted(points, key=lambda point: (order.index(type(point)), str(point)))


def _attached(cluster: Cluster, points: Iterable[NamedPoint | RuleNamed]) -> list[Policy]:
    """Return the policies that target some points, each once."""
    return list({policy.ref: policy for point in points for policy in cluster.attached(point)}.values())


def _policies(cluster: Cluster, points: Iterable[NamedPoint], rules: Iterable[RuleNamed] = ()) -> DescribedField:
    """List the policies at each point, and at those rules of routes that some target."""
    policies: dict[NamedPoint | RuleNamed, Sequence[Policy]] = {point: cluster.attached(point) for point in points}
    policies |= {rule: attached for rule in rules if (attached := cluster.attached(rule))}
    return points_field(cluster, policies)
