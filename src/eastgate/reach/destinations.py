"""Destinations: workloads that decide alike, gateways, backends; and the entrances by which requests come to them.

An entrance is a place where requests arrive of which something is known: the port, the Service that they are addressed
to. From there the FIRST passage whose condition a request meets leads on: a workload has one for all requests, a
gateway one for each match of its routes. ALL points at the end of a passage must allow.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain, product
from typing import Protocol

from eastgate.api.questions.arrivals import ASKED_ROUTES
from eastgate.cluster import Backend, Gateway, Route, Service, Workload, World
from eastgate.cluster.points import DeadEnd, Point
from eastgate.cluster.targets import BackendNamed, GatewayNamed, RouteNamed
from eastgate.dialects import Policy
from eastgate.engine.compiled import Program
from eastgate.engine.engine import Engine
from eastgate.gateway import ListenerGroup, RoutingTable, VirtualHost
from eastgate.gateway.attachment import is_http
from eastgate.gateway.hostnames import Host, comparable, specificity
from eastgate.gateway.journey import asks_for_gateway, beyond, server_of, undeclared_gateways
from eastgate.ir import ALWAYS, NEVER, Is, Layer, Not, OneOf, Predicate, Suffix, Unroutable, all_of, any_of
from eastgate.ir.attributes import BACKEND, HOST, PORT, SERVICE, SNI, Attribute
from eastgate.reach.endings import EnforcementPoint
from eastgate.reach.requests import PortClass, port_classes
from eastgate.records import dataclass
from eastgate.settings import Settings
from eastgate.symbolic.partial import Facts
from eastgate.symbolic.simplify import both

__all__ = [
    "Decides",
    "Destination",
    "DestinationKind",
    "Entrance",
    "Passage",
    "backend_alone",
    "backends",
    "classes",
    "endpoints",
    "gateways",
    "routes",
    "service_alone",
    "workload_class",
    "workloads",
]


class Decides(Protocol):
    """The parts of an authority that answers are computed from."""

    @property
    def world(self) -> World:
        """Return what exists."""

    @property
    def engine(self) -> Engine[Policy]:
        """Return what decides."""

    @property
    def settings(self) -> Settings:
        """Return the settings that decide."""


class DestinationKind(enum.StrEnum):
    """The kinds of destinations, by the words of questions."""

    POD = "pod"
    SERVICE = "service"
    GATEWAY = "gateway"
    ROUTE = "route"
    BACKEND = "backend"


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """A way on from an entrance, for requests that meet a condition; ALL points must allow.

    `leads_to` says where, as questions name it, if that is a destination of its own. `servers` are those behind it: two
    passages may lead to one.
    """

    when: Predicate
    points: tuple[EnforcementPoint, ...]
    leads_to: tuple[str, ...] = ()
    servers: frozenset[tuple[str, ...]] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Entrance:
    """A place where requests arrive: ports that nothing tells apart, and the Service that requests are addressed to.

    `others`: also every port that nothing names. `service` None: they are addressed to the workload itself. The FIRST
    passage that a request meets leads on, and there is always one. `hides_http`: no point sees HTTP.
    """

    ports: tuple[int, ...]
    others: bool
    facts: Facts
    passages: tuple[Passage, ...]
    service: str | None = None
    tls: bool | None = None
    hides_http: bool = False

    @property
    def layers(self) -> Iterator[Layer]:
        """Yield every layer behind the entrance, as often as passages lead to it."""
        return (layer for passage in self.passages for point in passage.points for layer in point.layers)


@dataclass(frozen=True, slots=True, eq=False)
class Destination:
    """Workloads that decide alike, or one gateway, route or backend. `members` are keys, `namespace/name`."""

    kind: DestinationKind
    members: tuple[str, ...]
    entrances: tuple[Entrance, ...]
    layers: tuple[Layer, ...] = ()
    points: tuple[Point, ...] = field(default=())

    @property
    def names(self) -> Iterator[str]:
        """Yield the members as questions name them."""
        return (f"{self.kind}:{member}" for member in self.members)


# Workloads


def workloads(authority: Decides) -> list[Destination]:
    """Return the classes of workloads that decide alike, at the ports that they declare or that some rule names."""
    return [workload_class(authority, layers, members) for layers, members in classes(authority)]


def classes(authority: Decides) -> list[tuple[tuple[Layer, ...], list[Workload]]]:
    """Return the workloads that decide alike, with their layers."""
    alike: dict[int, tuple[Program, list[Workload]]] = {}
    for key, workload in authority.world.workloads.items():
        program = authority.engine.program(key)
        alike.setdefault(id(program), (program, []))[1].append(workload)
    return [(program.layers, members) for program, members in alike.values()]


def workload_class(
    authority: Decides,
    layers: tuple[Layer, ...],
    members: Sequence[Workload],
    beside: Sequence[Layer] = (),
    ports: Iterable[int] = (),
    services: Iterable[str] = (),
) -> Destination:
    """Return workloads that have these layers as one destination.

    `beside`: what these layers tell apart is told apart as well; and `ports` and `services` are also declared.
    """
    keys = tuple(workload.key for workload in members)
    telling = (*layers, *beside)
    looked_at: frozenset[Attribute] = frozenset().union(*(layer.looks_at for layer in telling))
    declared = sorted({*ports, *(port.number for workload in members for port in workload.ports)})
    port_sets = port_classes(_port_atoms(telling) if PORT in looked_at else (), declared)
    addressed: list[str | None] = [None]
    if SERVICE in looked_at:
        behind = {service for workload in members for service in authority.world.services_of(workload.key)}
        addressed += sorted({*behind, *services} & _services_in(telling))
    entrances = tuple(_workload_entrance(keys, layers, port, service) for service in addressed for port in port_sets)
    return Destination(DestinationKind.POD, keys, entrances, layers, keys)


def _workload_entrance(
    keys: tuple[str, ...], layers: tuple[Layer, ...], port: PortClass, service: str | None
) -> Entrance:
    facts = port.facts.and_(Facts({SERVICE: service}))
    passage = Passage(ALWAYS, (EnforcementPoint(keys, layers),))
    return Entrance(port.ports, port.others, facts, (passage,), service)


def _port_atoms(layers: Iterable[Layer]) -> list[Is]:
    asked = (atom for layer in layers for atom in layer.atoms(observed=False))
    return list(dict.fromkeys(atom for atom in asked if isinstance(atom, Is) and atom.attribute is PORT))


def _services_in(layers: Iterable[Layer]) -> set[str]:
    return {
        str(value)
        for layer in layers
        for atom in layer.atoms(observed=False)
        if isinstance(atom, Is) and atom.attribute is SERVICE and isinstance(atom.matcher, OneOf)
        for value in atom.matcher.values
    }


# Services


def endpoints(authority: Decides, service: Service) -> dict[int | None, tuple[tuple[str, int | None], ...]]:
    """Return where each port of a Service leads to: workloads, each with its port. A Service without ports has None."""
    world = authority.world
    pods = [world.workloads[key] for key in sorted(world.pods_of(service.key))]
    if not service.ports:
        return {None: tuple((pod.key, None) for pod in pods)}
    return {
        port.port: tuple((pod.key, number) for pod in pods for number in world.target_ports(service, port.port, pod))
        for port in service.ports
    }


def service_alone(authority: Decides, service: Service) -> Destination:
    """Return a Service as a destination of its own: at each of its ports ALL workloads that it leads to must allow."""
    entrances = []
    for port, ends in endpoints(authority, service).items():
        alike: dict[tuple[int, int | None], list[str]] = {}
        programs: dict[int, Program] = {}
        for key, number in ends:
            program = authority.engine.program(key)
            programs[id(program)] = program
            alike.setdefault((id(program), number), []).append(key)
        points = tuple(
            EnforcementPoint(tuple(keys), programs[which].layers, _addressed(service, number))
            for (which, number), keys in alike.items()
        )
        if points:
            ports = () if port is None else (port,)
            entrances.append(Entrance(ports, port is None, Facts(), (Passage(ALWAYS, points),)))
    return Destination(DestinationKind.SERVICE, (service.key,), tuple(entrances))


def _addressed(service: Service, number: int | None) -> Facts:
    return Facts({SERVICE: service.key} if number is None else {SERVICE: service.key, PORT: number})


# Gateways, routes and backends


def gateways(authority: Decides) -> list[Destination]:
    """Return every Gateway, with an entrance for each port, with TLS and without."""
    found = []
    for gateway in authority.world.gateways.values():
        point = GatewayNamed(gateway.namespace, gateway.name)
        entrances = tuple(_gateway_entrances(authority, gateway, None))
        found.append(Destination(DestinationKind.GATEWAY, (gateway.key,), entrances, (), (point,)))
    return found


def routes(authority: Decides) -> list[Destination]:
    """Return the routes whose Gateway nobody declared: it is taken for one that lets everything in.

    Of several routes of one name, questions mean the first kind of `ASKED_ROUTES`.
    """
    found = []
    for key, route in _asked_routes(authority.world).items():
        entrances = tuple(_route_entrances(authority, route))
        if entrances:
            point = RouteNamed(route.namespace, route.name, route.kind)
            found.append(Destination(DestinationKind.ROUTE, (key,), entrances, (), (point,)))
    return found


def _asked_routes(world: World) -> dict[str, Route]:
    """Return the routes that questions mean, by the names that questions have for them."""
    asked = (route for route in world.routes.values() if route.kind in ASKED_ROUTES)
    last_first = sorted(asked, key=lambda route: ASKED_ROUTES.index(route.kind), reverse=True)
    return {f"{route.namespace}/{route.name}": route for route in last_first}


def _route_entrances(authority: Decides, route: Route) -> Iterator[Entrance]:
    """Yield the ports of a route's undeclared gateways; who asks about the route must get through ALL of them."""
    if not asks_for_gateway(route):
        yield _alone(authority, route)
        return
    by_port: dict[tuple[tuple[int, ...], bool | None, bool], list[Entrance]] = {}
    for gateway in undeclared_gateways(route, authority.world):
        for entrance in _gateway_entrances(authority, gateway, route):
            by_port.setdefault((entrance.ports, entrance.tls, entrance.hides_http), []).append(entrance)
    for entrances in by_port.values():
        first = entrances[0]
        yield first if len(entrances) == 1 else replace(first, passages=tuple(_through_all(entrances)))


def _alone(authority: Decides, route: Route) -> Entrance:
    """Return the entrance of a route that asks for no gateway: what its hostnames mean comes to the route itself."""
    is_stream = route.kind == "TLSRoute"
    by, port = (SNI, 443) if is_stream else (HOST, 80)
    named = any_of(_names(by, comparable(hostname)) for hostname in route.hostnames) if route.hostnames else ALWAYS
    ends: Sequence[tuple[Predicate, Point]] = (
        (named, RouteNamed(route.namespace, route.name, route.kind)),
        (ALWAYS, DeadEnd(Unroutable.NO_ROUTE)),
    )
    passages = tuple(
        Passage(when, (EnforcementPoint((str(end),), authority.engine.program(end).layers, Facts({BACKEND: None})),))
        for when, end in ends
    )
    tls = True if is_stream else None
    return Entrance((port,), False, Facts({PORT: port}), passages, tls=tls, hides_http=is_stream)


def _through_all(entrances: Sequence[Entrance]) -> Iterator[Passage]:
    """Yield the passages of requests that come in by each of some entrances: of each, the FIRST that they meet."""
    for passages in product(*(entrance.passages for entrance in entrances)):
        when = both(passage.when for passage in passages)
        if when != NEVER:
            points = chain.from_iterable(passage.points for passage in passages)
            leads_to = chain.from_iterable(passage.leads_to for passage in passages)
            servers = frozenset[tuple[str, ...]]().union(*(passage.servers for passage in passages))
            yield Passage(when, tuple(points), tuple(dict.fromkeys(leads_to)), servers)


def backends(authority: Decides) -> list[Destination]:
    """Return every Backend, as it is past all gateways."""
    return [backend_alone(authority, backend) for backend in authority.world.backends.values()]


def backend_alone(
    authority: Decides, backend: Backend, beside: Sequence[Layer] = (), ports: Iterable[int] = ()
) -> Destination:
    """Return a Backend as it is past all gateways; `beside` and `ports`: as for workloads."""
    point = BackendNamed(backend.namespace, backend.name)
    facts = Facts({BACKEND: backend.key})
    layers = authority.engine.program(point).layers
    passage = Passage(ALWAYS, (EnforcementPoint((backend.key,), layers, facts),))
    classes = port_classes(_port_atoms((*layers, *beside)), sorted({*ports, *([backend.port] if backend.port else [])}))
    entrances = tuple(Entrance(port.ports, port.others, port.facts, (passage,)) for port in classes)
    return Destination(DestinationKind.BACKEND, (backend.key,), entrances, layers, (point,))


def _gateway_entrances(authority: Decides, gateway: Gateway, only: Route | None) -> Iterator[Entrance]:
    """Yield the ports of a gateway; `only`: requests that take another route lead nowhere."""
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
    authority: Decides,
    gateway: Gateway,
    group: ListenerGroup,
    hosts: Sequence[VirtualHost],
    only: Route | None,
) -> Iterator[Passage]:
    """Yield the passages of virtual hosts, the most specific first; what fits no route of its host leads nowhere."""
    nowhere = _points(authority, gateway, None, None)
    for host in hosts:
        by = SNI if not is_http(host.listener) else HOST
        named = _names(by, host.hostname)
        meant = all_of((named, _handshake(group, host) if by is HOST else ALWAYS))
        for candidate in host.candidates:
            routed = candidate.routed
            when = all_of((meant, candidate.when))
            if only is not None and routed.route != only:
                yield Passage(when, nowhere)
                continue
            ends = list(beyond(routed, authority.world))
            points = (_points(authority, gateway, routed.route, end, backend) for _, end, backend in ends)
            leads_to = (_leads_to(end, words) for words, end, _ in ends if words is not None)
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
    authority: Decides, gateway: Gateway, route: Route | None, end: Point | None, backend: str | None = None
) -> tuple[EnforcementPoint, ...]:
    """Return what decides on the way from a gateway by a route to its end, as one point; no route: it ends there."""
    way: list[Point] = [GatewayNamed(gateway.namespace, gateway.name)]
    if route is None:
        way.append(DeadEnd(Unroutable.NO_ROUTE))
    else:
        way.append(RouteNamed(route.namespace, route.name, route.kind))
        way += [end] if end is not None else []
    layers = tuple(layer for point in way for layer in authority.engine.program(point).layers)
    return (EnforcementPoint((str(way[-1]),), layers, Facts({BACKEND: backend})),)


def _names(attribute: Attribute, hostname: Host) -> Predicate:
    """Match what a hostname means, and what a more specific one does not mean before it."""
    if hostname is None:
        return ALWAYS
    if hostname.startswith("*."):
        return Is(attribute, Suffix(hostname[1:]))
    return Is(attribute, OneOf(frozenset({hostname})))


def _handshake(group: ListenerGroup, host: VirtualHost) -> Predicate:
    """Match requests whose TLS handshake chose the listener by which their host comes in."""
    if not group.tls:
        return ALWAYS
    mine = comparable(host.listener.hostname)
    narrower = [
        name
        for listener in group.listeners
        if (name := comparable(listener.hostname)) != mine and specificity(name) > specificity(mine)
    ]
    return all_of((_names(SNI, mine), *(Not(_names(SNI, name)) for name in narrower)))
