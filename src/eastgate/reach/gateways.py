"""Gateways with their routes, and routes of undeclared Gateways, as destinations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, product

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.questions.destinations import ASKED_ROUTES
from eastgate.cluster import Gateway, Route, World
from eastgate.cluster.points import DeadEnd, Point
from eastgate.cluster.routing import ListenerGroup, Routed, RoutingTable, VirtualHost
from eastgate.cluster.routing.attachment import is_http
from eastgate.cluster.routing.hostnames import comparable, named_by, specificity
from eastgate.cluster.routing.journey import alone, asks_for_gateway, beyond, points_of, server_of, undeclared_gateways
from eastgate.cluster.targets import BackendNamed, GatewayNamed, RouteNamed
from eastgate.ir import ALWAYS, NEVER, Not, Predicate, Unroutable, all_of, any_of
from eastgate.ir.attributes import BACKEND, HOST, PORT, SNI
from eastgate.ir.symbolic.partial import Facts
from eastgate.ir.symbolic.simplify import both
from eastgate.reach.destinations import Destination, DestinationKind, Entrance, Passage
from eastgate.reach.endings import EnforcementPoint


def gateways(authority: Authority) -> list[Destination]:
    """Return every Gateway, with an entrance for each port, with TLS and without."""
    found = []
    for gateway in authority.world.gateways.values():
        point = GatewayNamed(gateway.namespace, gateway.name)
        entrances = tuple(_gateway_entrances(authority, gateway, None))
        found.append(Destination(DestinationKind.GATEWAY, (gateway.key,), entrances, (), (point,)))
    return found


def routes(authority: Authority) -> list[Destination]:
    """Return the routes of undeclared Gateways. Such a Gateway is treated as one that allows everything.

    If several routes have one name, questions mean the first kind in `ASKED_ROUTES`.
    """
    found = []
    for key, route in _asked_routes(authority.world).items():
        entrances = tuple(_route_entrances(authority, route))
        if entrances:
            point = RouteNamed(route.namespace, route.name, route.kind)
            found.append(Destination(DestinationKind.ROUTE, (key,), entrances, (), (point,)))
    return found


def _asked_routes(world: World) -> dict[str, Route]:
    """Return the routes that questions mean, by their names in questions."""
    asked = (route for route in world.routes.values() if route.kind in ASKED_ROUTES)
    last_first = sorted(asked, key=lambda route: ASKED_ROUTES.index(route.kind), reverse=True)
    return {f"{route.namespace}/{route.name}": route for route in last_first}


def _route_entrances(authority: Authority, route: Route) -> Iterator[Entrance]:
    """Yield the ports of a route's undeclared Gateways. A question about the route must pass ALL of them."""
    if not asks_for_gateway(route):
        yield _entrance_without_gateway(authority, route)
        return
    by_port: dict[tuple[tuple[int, ...], bool | None, bool], list[Entrance]] = {}
    for gateway in undeclared_gateways(route, authority.world):
        for entrance in _gateway_entrances(authority, gateway, route):
            by_port.setdefault((entrance.ports, entrance.tls, entrance.hides_http), []).append(entrance)
    for entrances in by_port.values():
        first = entrances[0]
        yield first if len(entrances) == 1 else replace(first, passages=tuple(_passages_through_all(entrances)))


def _entrance_without_gateway(authority: Authority, route: Route) -> Entrance:
    """Return the entrance of a route without a Gateway: requests to its hostnames reach the route itself."""
    is_stream = route.kind == "TLSRoute"
    by, port = (SNI, 443) if is_stream else (HOST, 80)
    named = any_of(named_by(comparable(hostname), by) for hostname in route.hostnames) if route.hostnames else ALWAYS
    ends: Sequence[tuple[Predicate, Sequence[tuple[Point, ...]]]] = (
        (named, alone(route, programs_of(authority).is_guarded)),
        (ALWAYS, [(DeadEnd(Unroutable.NO_ROUTE),)]),
    )
    passages = tuple(
        Passage(when, tuple(_point_of_all(authority, points, None) for points in ways)) for when, ways in ends
    )
    tls = True if is_stream else None
    return Entrance((port,), False, Facts({PORT: port}), passages, tls=tls, hides_http=is_stream)


def _passages_through_all(entrances: Sequence[Entrance]) -> Iterator[Passage]:
    """Yield the passages of requests that pass all of some entrances, by the FIRST passage of each."""
    for passages in product(*(entrance.passages for entrance in entrances)):
        when = both(passage.when for passage in passages)
        if when != NEVER:
            points = chain.from_iterable(passage.points for passage in passages)
            leads_to = chain.from_iterable(passage.leads_to for passage in passages)
            servers = frozenset[tuple[str, ...]]().union(*(passage.servers for passage in passages))
            yield Passage(when, tuple(points), tuple(dict.fromkeys(leads_to)), servers)


def _gateway_entrances(authority: Authority, gateway: Gateway, only: Route | None) -> Iterator[Entrance]:
    """Yield the ports of a Gateway. `only`: requests that take another route have no destination."""
    table = RoutingTable.of(authority.world, gateway)
    for group in table.groups:
        facts = Facts({PORT: group.port})
        web = tuple(_passages(authority, gateway, group, group.virtual_hosts(), only))
        if any(is_http(listener) for listener in group.listeners):
            yield Entrance((group.port,), False, facts, web, tls=group.tls)
        streams = group.streams()
        if streams:
            passed = tuple(_passages(authority, gateway, group, streams, only))
            yield Entrance((group.port,), False, facts, passed, tls=True, hides_http=True)


def _passages(
    authority: Authority,
    gateway: Gateway,
    group: ListenerGroup,
    hosts: Sequence[VirtualHost],
    only: Route | None,
) -> Iterator[Passage]:
    """Yield the passages of virtual hosts, the most specific first. Requests without a route have no destination."""
    nowhere = _points(authority, gateway, None, None)
    for host in hosts:
        by = SNI if not is_http(host.listener) else HOST
        named = named_by(host.hostname, by)
        meant = all_of((named, _handshake(group, host) if by is HOST else ALWAYS))
        for candidate in host.candidates:
            routed = candidate.routed
            when = all_of((meant, candidate.when))
            if only is not None and routed.route != only:
                yield Passage(when, nowhere)
                continue
            ends = list(beyond(routed, authority.world))
            points = (_points(authority, gateway, routed, end, backend) for _, end, backend, _ in ends)
            leads_to = (_leads_to(end, words) for words, end, _, _ in ends if words is not None)
            servers = frozenset(filter(None, (server_of(ref, authority.world) for ref in routed.backends)))
            yield Passage(when, tuple(chain.from_iterable(points)), tuple(leads_to), servers)
        yield Passage(named, nowhere)
    yield Passage(ALWAYS, nowhere)


def _leads_to(point: Point | None, words: str) -> str:
    if isinstance(point, BackendNamed):
        return f"backend:{point.namespace}/{point.name}"
    kind, _, key = words.partition(" ")
    return f"{kind.lower()}:{key}"


def _points(
    authority: Authority, gateway: Gateway, routed: Routed | None, end: Point | None, backend: str | None = None
) -> tuple[EnforcementPoint, ...]:
    """Return the policies on the path from a Gateway by a rule to its end, as one point. No rule: there is no path."""
    way: list[Point] = [GatewayNamed(gateway.namespace, gateway.name)]
    if routed is None:
        way.append(DeadEnd(Unroutable.NO_ROUTE))
    else:
        way += points_of(routed, programs_of(authority).is_guarded)
        way += [end] if end is not None else []
    return (_point_of_all(authority, way, backend),)


def _point_of_all(authority: Authority, way: Sequence[Point], backend: str | None) -> EnforcementPoint:
    """Return all policies on a path as one point."""
    layers = tuple(layer for point in way for layer in programs_of(authority).program(point).layers)
    return EnforcementPoint((str(way[-1]),), layers, Facts({BACKEND: backend}))


def _handshake(group: ListenerGroup, host: VirtualHost) -> Predicate:
    """Match requests whose TLS handshake chose the listener of their host."""
    if not group.tls:
        return ALWAYS
    mine = comparable(host.listener.hostname)
    narrower = [
        name
        for listener in group.listeners
        if (name := comparable(listener.hostname)) != mine and specificity(name) > specificity(mine)
    ]
    return all_of((named_by(mine, SNI), *(Not(named_by(name, SNI)) for name in narrower)))
