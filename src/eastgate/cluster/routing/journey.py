"""The way of a request through a gateway: the gateway itself, a route, and the backend.

A route may lead to several backends, and a partial request may take several routes. Each is a way of its own; a
question is allowed only if every way is allowed. Servers disagree about some paths (an encoded slash). Such a request
takes one route, but its server may read another path: then every way to that server counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

from eastgate.basics.records import dataclass
from eastgate.cluster import (
    GATEWAY_GROUP,
    AllowedRoutes,
    Gateway,
    GrpcRule,
    Listener,
    ParentRef,
    Route,
    RouteRule,
    RoutesFrom,
    StreamRule,
    World,
)
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.cluster.points import ANY_LISTENER, DeadEnd, NamedPoint, Point, RuleNamed
from eastgate.cluster.routing import BackendRef, Routed, RoutingTable
from eastgate.cluster.routing.candidates import matches_of
from eastgate.cluster.routing.hostnames import comparable, hostnames_of, named_by
from eastgate.cluster.routing.model import rules_of
from eastgate.cluster.targets import BackendNamed, GatewayNamed, RouteNamed
from eastgate.ir import ALWAYS, Predicate, Request, Unroutable, any_of
from eastgate.ir.addresses import comparable_sni
from eastgate.ir.attributes import HOST, PATH, PORT, SNI, UNKNOWN
from eastgate.ir.paths import is_refused
from eastgate.ir.symbolic.simplify import both

ServicePortKey = tuple[str, int | None]
TableOf = Callable[[Gateway], RoutingTable]
IsGuarded = Callable[[RuleNamed], bool]
Condition = Callable[[], Predicate | None]


@dataclass(frozen=True, slots=True)
class Way:
    """One way of a request. `start` and `leads_to` are texts about its beginning and, if known, its end.

    - `points` are the points of enforcement on it, in order.
    - `backend` is the key of the backend at its end.
    - `hides_http`: the gateway forwards the connection as it is, so that nothing on this way sees HTTP.
    - `service` is the Service that the gateway calls, and the port there.
    - `guard` returns the condition on requests that take this way, if a route leads to it.
    - `condition` returns the same, if nothing else is known about the requests, as for an MCP message.
    """

    start: str
    points: tuple[Point, ...]
    backend: str | None = None
    leads_to: str | None = None
    hides_http: bool = False
    service: ServicePortKey | None = None
    condition: Condition | None = None
    guard: Condition | None = None

    @property
    def where(self) -> str:
        """Return the whole way, as text."""
        return self.start if self.leads_to is None else f"{self.start} -> {self.leads_to}"


def through_gateway(
    gateway: Gateway,
    request: Request,
    world: World,
    *,
    is_message: bool = False,
    route: Route | None = None,
    table_of: TableOf | None = None,
    is_guarded: IsGuarded = lambda _rule: False,
) -> Iterator[Way]:
    """Yield every way that the request may take, the likeliest first.

    - `is_message`: only the MCP message of the request is known. Then the ways are all rules that lead to an XBackend,
      or all rules if none does, and each way has its condition.
    - `route`: only requests that take this route; if none can take it, there is no way.
    - `table_of` returns the routing table of a gateway, for callers that cache tables.
    - `is_guarded` returns whether policies target a rule of a route: such a rule is a point of enforcement of its own.
    """
    entrance = GatewayNamed(gateway.namespace, gateway.name)
    table = RoutingTable.of(world, gateway) if table_of is None else table_of(gateway)
    routes = table.possible_by_listener(request)
    if route is not None:
        routes = tuple(routed for routed in routes if routed is not None and routed.route == route) or (None,)
    elif is_message:
        routes = tuple(_for_messages(routes, world))
    ways: dict[tuple[tuple[Point, ...], str | None], Way] = {}
    rules: dict[tuple[tuple[Point, ...], str | None], list[Routed]] = {}
    for routed in (*routes, *_rules_by_other_readings(table, routes, request, world)):
        taken = () if routed is None else points_of(routed, is_guarded)
        hides_http = routed is not None and routed.is_stream
        for leads_to, point, backend, service in beyond(routed, world):
            points = (entrance, *taken, *(() if point is None else (point,)))
            way = Way(f"gateway {gateway.key}", points, backend, leads_to, hides_http, service)
            ways.setdefault((points, backend), way)
            rules.setdefault((points, backend), []).extend(() if routed is None else (routed,))
    for key, way in ways.items():
        guard = cache(partial(table.condition_of, rules[key], request)) if rules[key] else None
        yield replace(way, condition=guard if is_message else None, guard=guard)


def _for_messages(routes: Sequence[Routed | None], world: World) -> Sequence[Routed | None]:
    """Return the rules that lead to an XBackend; if none does, all rules that see HTTP. The widest is first."""
    rules = [routed for routed in reversed(routes) if routed is not None]
    to_backends = [routed for routed in rules if any(_is_backend(point) for _, point, _, _ in beyond(routed, world))]
    return to_backends or [routed for routed in rules if not routed.is_stream] or rules or routes


def _is_backend(point: Point | None) -> bool:
    return isinstance(point, BackendNamed)


def leading_to(backend: BackendNamed, request: Request, world: World, table_of: TableOf) -> Predicate | None:
    """Return the condition on all requests that a route leads to a backend; None if no route leads there."""
    conditions: list[Predicate] = []
    assumed = (gateway for route in world.routes.values() for gateway in undeclared_gateways(route, world))
    for gateway in (*world.gateways.values(), *assumed):
        table = table_of(gateway)
        rules = [routed for routed in table.rules if any(point == backend for _, point, _, _ in beyond(routed, world))]
        conditions += [table.condition_of(rules, request)] if rules else []
    for route in world.routes.values():
        if not asks_for_gateway(route) and any(_refers_to(rule, backend) for rule in rules_of(route)):
            conditions.append(_condition_alone(route))
    return any_of(conditions) if conditions else None


def _refers_to(rule: RouteRule | GrpcRule | StreamRule, backend: BackendNamed) -> bool:
    named = ((ref.kind in BACKEND_KINDS, ref.namespace, ref.name) for ref in rule.backends)
    return (True, backend.namespace, backend.name) in named


def points_of(routed: Routed, is_guarded: IsGuarded) -> tuple[Point, ...]:
    """Return the points of enforcement of a rule of a route: the route, and the rule if policies target it."""
    route, rule = _named(routed.route), routed.point
    return (route, rule) if is_guarded(rule) else (route,)


def _rules_by_other_readings(
    table: RoutingTable, routes: Iterable[Routed | None], request: Request, world: World
) -> Iterator[Routed]:
    """Yield other rules for paths that the server of the request may read in it, with the backends of that server."""
    if not is_refused(request.values.get(PATH)):
        return
    refs = [ref for routed in routes if routed is not None for ref in routed.backends if not routed.answered]
    servers = {server_of(ref, world) for ref in refs} - {None}
    for routed in table.possible_whatever_the_path(request):
        backends = tuple(ref for ref in routed.backends if server_of(ref, world) in servers)
        may_refuse = any(unsupported.may_refuse for unsupported in routed.unsupported)
        if backends and not routed.answered and not may_refuse:
            yield replace(routed, backends=backends)


def server_of(ref: BackendRef, world: World) -> tuple[str, ...] | None:
    """Return a key of the server behind a backend, equal for backends with the same pods or host, or None."""
    if ref.answered or isinstance(_point(ref, world), DeadEnd):
        return None
    name = ref.name
    if ref.kind in BACKEND_KINDS:
        backend = world.backends[f"{ref.namespace}/{ref.name}"]
        if backend.service_name is None:
            return "host", backend.hostname or ""
        name = backend.service_name
    service = world.services.get(f"{ref.namespace}/{name}")
    if service is None or not service.selects_pods:
        return "service", ref.namespace, name
    return "pods", ref.namespace, *(f"{label}={value}" for label, value in sorted(service.selector.items()))


def through_route(
    route: Route,
    request: Request,
    world: World,
    *,
    is_message: bool = False,
    table_of: TableOf | None = None,
    is_guarded: IsGuarded = lambda _rule: False,
) -> Iterator[Way]:
    """Yield every way on which the request may take a route: through each Gateway that the route is attached to.

    An undeclared Gateway counts as one that accepts all routes. A route without a Gateway is a way by itself.
    `is_message`: as for `through_gateway`.
    """
    parents = _gateways(route)
    for parent in parents:
        gateway = world.gateways.get(f"{parent.namespace}/{parent.name}") or _assumed(parent, route, request)
        yield from through_gateway(
            gateway,
            request,
            world,
            is_message=is_message,
            route=route,
            table_of=table_of,
            is_guarded=is_guarded,
        )
    if not parents:
        start = f"route {route.namespace}/{route.name}"
        taken = alone(route, is_guarded) if _means(route, request) else [(DeadEnd(Unroutable.NO_ROUTE),)]
        guard = cache(partial(_condition_alone, route))
        condition = guard if is_message else None
        hides = _is_stream(route)
        yield from (Way(start, points, hides_http=hides, condition=condition, guard=guard) for points in taken)


def _condition_alone(route: Route) -> Predicate:
    """Return the condition on requests that take a route without a Gateway."""
    by = SNI if _is_stream(route) else HOST
    hosts = any_of(named_by(comparable(name), by) for name in route.hostnames) if route.hostnames else ALWAYS
    return both((hosts, any_of(when for rule in rules_of(route) for when in matches_of(rule))))


def alone(route: Route, is_guarded: IsGuarded) -> list[tuple[Point, ...]]:
    """Return the points of each way by a route without a Gateway: a request may take any of its rules."""
    rules = [Routed(route, number, (), answered=False) for number in range(len(rules_of(route)))]
    ways = [points_of(routed, is_guarded) for routed in rules] or [(_named(route),)]
    return list(dict.fromkeys(ways))


def undeclared_gateways(route: Route, world: World) -> Iterator[Gateway]:
    """Yield the undeclared Gateways of a route, each as a Gateway that accepts all routes."""
    for parent in _gateways(route):
        if f"{parent.namespace}/{parent.name}" not in world.gateways:
            yield _assumed(parent, route, Request({}))


def asks_for_gateway(route: Route) -> bool:
    """Return whether a route has a Gateway, declared or not. Of other routes, only the route itself is known."""
    return bool(_gateways(route))


def _gateways(route: Route) -> list[ParentRef]:
    return [parent for parent in route.parents if (parent.group, parent.kind) == (GATEWAY_GROUP, "Gateway")]


def _named(route: Route) -> RouteNamed:
    return RouteNamed(route.namespace, route.name, route.kind)


def _is_stream(route: Route) -> bool:
    return route.kind == "TLSRoute"


def _means(route: Route, request: Request) -> bool:
    """Return whether a route is, or may be, for the host or the SNI of a request."""
    host = request.get(SNI if _is_stream(route) else HOST)
    if host is UNKNOWN:
        return True
    name = comparable_sni(str(host or "")) or None if _is_stream(route) else comparable(str(host or ""))
    hostnames = {comparable(hostname) for hostname in route.hostnames} or {None}
    return any(each in hostnames for each in hostnames_of(name))


def _assumed(parent: ParentRef, route: Route, request: Request) -> Gateway:
    asked = request.values.get(PORT)
    protocol, usual = ("TLS", 443) if _is_stream(route) else ("HTTP", 80)
    port = parent.port or (asked if isinstance(asked, int) else usual)
    everybody = AllowedRoutes(RoutesFrom.ALL)
    listener = Listener(parent.section_name or ANY_LISTENER, port, protocol, allowed_routes=everybody)
    return Gateway(parent.namespace, parent.name, (listener,))


_Behind = tuple[str | None, NamedPoint | DeadEnd | None, str | None, ServicePortKey | None]


def beyond(routed: Routed | None, world: World) -> Iterator[_Behind]:
    """Yield the destinations behind a route: as text, as a point of policies, as the key of a backend, as a Service."""
    if routed is None:
        yield None, DeadEnd(Unroutable.NO_ROUTE), None, None
    elif any(unsupported.may_refuse for unsupported in routed.unsupported):
        yield None, DeadEnd(Unroutable.UNSUPPORTED_FILTER), None, None
    elif routed.answered:
        yield None, None, None, None
    elif not routed.backends:
        yield None, DeadEnd(Unroutable.NO_BACKEND), None, None
    else:
        for ref in routed.backends:
            key = f"{ref.namespace}/{ref.name}"
            backend = key if ref.kind in BACKEND_KINDS else None
            yield f"{ref.kind} {key}", _point(ref, world), backend, _service_of(ref, world)


def _service_of(ref: BackendRef, world: World) -> ServicePortKey | None:
    """Return the Service behind a backend, or None."""
    if ref.kind not in BACKEND_KINDS:
        return f"{ref.namespace}/{ref.name}", ref.port
    backend = world.backends.get(f"{ref.namespace}/{ref.name}")
    if backend is None or backend.service_name is None:
        return None
    return f"{backend.namespace}/{backend.service_name}", backend.port


def _point(ref: BackendRef, world: World) -> NamedPoint | DeadEnd | None:
    if any(unsupported.may_refuse for unsupported in ref.unsupported):
        return DeadEnd(Unroutable.UNSUPPORTED_FILTER)
    if ref.answered:
        return None
    if not ref.granted:
        return DeadEnd(Unroutable.REFERENCE_NOT_GRANTED)
    if ref.kind not in BACKEND_KINDS:
        return None  # a Service: the policies of its pods are another question
    if f"{ref.namespace}/{ref.name}" not in world.backends:
        return DeadEnd(Unroutable.BACKEND_NOT_DECLARED)
    return BackendNamed(ref.namespace, ref.name)
