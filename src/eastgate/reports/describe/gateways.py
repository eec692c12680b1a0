"""`describe gateway`, `route` and `backend`: listeners, the ways through them, and their callers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from eastgate.authority.authority import programs_of
from eastgate.cluster import Backend, Gateway, GrpcMatch, Route, RouteMatch, StreamRule
from eastgate.cluster.points import DeadEnd, NamedPoint, Point, RuleNamed
from eastgate.cluster.routing import ListenerGroup, RoutingTable
from eastgate.cluster.routing.attachment import attached_routes, distinct_listeners
from eastgate.cluster.routing.journey import Way, through_gateway, through_route
from eastgate.cluster.routing.model import rules_of
from eastgate.cluster.targets import BackendNamed, GatewayNamed, RouteNamed
from eastgate.dialects import Policy
from eastgate.envoy.plan.combining import Enforcer, LayerEnforcement, enforcement_at_gateway
from eastgate.envoy.plan.gateway import GatewayDestination
from eastgate.envoy.plan.gateway_planner import plan_destinations
from eastgate.ir import Is, Matcher, OneOf, Request, Suffix
from eastgate.ir.attributes import BACKEND, HOST, SNI
from eastgate.ir.symbolic.partial import Facts
from eastgate.reach.endings import EnforcementPoint
from eastgate.reach.table import EffectiveDestination, effective_table
from eastgate.reports.cluster import Cluster, effects_of
from eastgate.reports.columns import columns
from eastgate.reports.describe.model import DescribedField, Description, list_field, value_field
from eastgate.reports.describe.policies import findings_field
from eastgate.reports.describe.policy import effective_policies_field
from eastgate.reports.describe.tables import effective_field, inherited_field, points_field, span_data

# The callers of each way through a gateway: a table by host, route and backend. Policies at gateways compare the host
# of the header and of the TLS handshake. A well-behaved client sends the same host in both, and the table covers only
# such requests. It has one row for each host that a rule names, and one row for all others.


_UNUSED_LABEL = "other--host"  # a label that no object has
_HOSTS = frozenset({HOST, SNI})


def ways_field(cluster: Cluster, ways: list[Way], ways_of: Callable[[Request], list[Way]]) -> DescribedField:
    """Make the effective table of some ways. `ways_of` returns the ways that a request may take."""
    layers = [layer for way in ways for point in way.points for layer in cluster.layers(point)]
    asked = (atom for layer in layers for atom in layer.atoms(observed=False))
    matchers = [atom.matcher for atom in asked if isinstance(atom, Is) and atom.attribute in _HOSTS]
    destinations: list[EffectiveDestination] = []
    for name, facts in _hosts(matchers):
        led = _without_dead_end(ways_of(Request(facts.values)) if facts.values else ways)
        led = [way for way in led if _is_decided_by_what_it_shows(cluster, way)]
        if not facts.values or any(_route(way.points) for way in led):
            destinations += [_destination(cluster, name, facts, way, alone=len(led) == 1) for way in led]
    if not destinations:
        return list_field("effective", "Effective", [], [], none="no request takes it")
    title = "HOST" if matchers else "WAY"
    return effective_field(
        cluster, [("", effective_table(destinations, cluster.authority.settings, cluster.given))], title=title
    )


def _is_decided_by_what_it_shows(cluster: Cluster, way: Way) -> bool:
    """Return whether the table can show a way.

    Rows distinguish requests by HTTP attributes, which some ways do not read.
    """
    layers = (layer for point in way.points for layer in cluster.layers(point))
    return not way.hides_http or not any(attribute.needs_http for layer in layers for attribute in layer.looks_at)


def _destination(cluster: Cluster, host: str, facts: Facts, way: Way, *, alone: bool) -> EffectiveDestination:
    layers = tuple(layer for point in way.points for layer in cluster.layers(point))
    name = " ".join(part for part in (host, "" if alone else _way_text(way)) if part)
    return EffectiveDestination(
        name, (EnforcementPoint((way.where,), layers, facts.and_(Facts({BACKEND: way.backend}))),)
    )


def _hosts(matchers: Iterable[Matcher]) -> Iterator[tuple[str, Facts]]:
    """Yield each host that a rule names, each group of hosts, and all others; one entry if no rule names a host."""
    given = list(matchers)
    exact = sorted({str(value) for matcher in given if isinstance(matcher, OneOf) for value in matcher.values})
    suffixes = sorted(
        {matcher.text for matcher in given if isinstance(matcher, Suffix)}, key=lambda text: (-len(text), text)
    )
    if not given:
        yield "", Facts()
        return
    for host in exact:
        yield host, Facts({HOST: host, SNI: host})
    for suffix in suffixes:
        host = _UNUSED_LABEL + suffix
        others = " (others)" if any(other.endswith(suffix) for other in (*exact, *suffixes) if other != suffix) else ""
        yield f"*{suffix}{others}", Facts({HOST: host, SNI: host}, _HOSTS)
    yield "any other host", Facts({HOST: _UNUSED_LABEL, SNI: _UNUSED_LABEL}, _HOSTS)


def _without_dead_end(ways: list[Way]) -> list[Way]:
    """Leave out the way of requests that match no route, unless it is the only one."""
    return [way for way in ways if _route(way.points)] or ways


def _route(points: Iterable[Point]) -> str | None:
    return next((f"{point.namespace}/{point.name}" for point in points if isinstance(point, RouteNamed)), None)


def _way_text(way: Way) -> str:
    """Render the route of a way and its destination."""
    route = _route(way.points)
    if route is None:
        return "no route" if isinstance(way.points[-1], DeadEnd) else way.where
    rule = next((f" rule {point.label}" for point in way.points if isinstance(point, RuleNamed)), "")
    return f"{route}{rule}" if way.leads_to is None else f"{route}{rule} -> {way.leads_to}"


# The enforcer of each destination of a gateway: its Envoy, the authorizer, or none because the route is closed.


_ENFORCERS = {
    Enforcer.ENVOY: "by the gateway's Envoy",
    Enforcer.AUTHORIZER: "by the authorizer",
    Enforcer.BOTH: "by the gateway's Envoy, and by the authorizer where rules ask",
}


def enforcement_field(cluster: Cluster, gateway: Gateway) -> DescribedField:
    """List each destination of a gateway with its enforcers."""
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
            words = "TLS is passed through: closed unless policies allow it without reading caller and request"
            entry: dict[str, object] = {"route": route.key, "rule": candidate.routed.rule, "to": None}
            yield {**entry, "closed": [], "passedThrough": True, "layers": []}, [title, f"  {words}"]


def _entry(cluster: Cluster, destination: GatewayDestination, port: int) -> tuple[dict[str, object], list[str]]:
    routed, backend, end = destination.routed, destination.backend, destination.points[-1]
    closed = [*destination.unsupported, *([str(end)] if isinstance(end, DeadEnd) else [])]
    layers: list[dict[str, object]] = []
    lines = [destination.title]
    if destination.unsupported:
        lines.append(
            f"  closed: the gateway cannot do all that the route asks for: {', '.join(destination.unsupported)}"
        )
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


_ANY = Request({})


def describe_gateway(cluster: Cluster, gateway: Gateway) -> Description:
    """Describe a Gateway, and the routes and backends behind it."""
    world = cluster.authority.world
    point = GatewayNamed(gateway.namespace, gateway.name)

    is_guarded = programs_of(cluster.authority).is_guarded

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
    world, is_guarded = cluster.authority.world, programs_of(cluster.authority).is_guarded

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
    """List the policies at each point, and those that target single rules of routes."""
    policies: dict[NamedPoint | RuleNamed, Sequence[Policy]] = {point: cluster.attached(point) for point in points}
    policies |= {rule: attached for rule in rules if (attached := cluster.attached(rule))}
    return points_field(cluster, policies)
