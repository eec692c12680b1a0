"""Destinations: the points where requests arrive, with all attributes that follow from arriving there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol, TypeVar, assert_never

from eastgate.authority.questions.callers import not_declared, workloads_of
from eastgate.authority.questions.derived import address_of, transport_of
from eastgate.authority.questions.values import host_values
from eastgate.basics.regexes import regex
from eastgate.cluster import PodsAcross, Route, Service, Workload, World, ends
from eastgate.cluster.ends import EntryPoint, Values
from eastgate.cluster.gateways import MESH_GATEWAY_GROUP
from eastgate.cluster.points import Point
from eastgate.cluster.question import Question
from eastgate.cluster.question_errors import BAD_ATTRIBUTE, BAD_DESTINATION, NOTHING_BEHIND, QuestionError
from eastgate.cluster.targets import BackendNamed, HostNamed
from eastgate.dialects import HOSTS
from eastgate.ir import PolicyRef, Predicate, Request
from eastgate.ir.addresses import comparable_host, parse_address
from eastgate.ir.attributes import (
    BACKEND,
    DESTINATION_ADDRESS,
    DESTINATION_DOMAIN,
    HANDED_PATH,
    HOST_POLICY,
    PORT,
    SERVICE,
    SNI,
)
from eastgate.ir.labels import Selector
from eastgate.ir.paths import is_canonical, sent_path
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.cluster.routing.journey import IsGuarded, TableOf, Way


# Hosts outside of the cluster, as questions about egress name them.


_DNS_NAME = regex(r"[\w-]+(\.[\w-]+)*\.?")
_IN_URL = regex(r"([a-z]+://)?(?P<name>[\w-]+(\.[\w-]+)*\.?)(:(?P<port>\d{1,5}))?(/.*)?")


def check_host(to: ends.Host, world: World, settings: Settings) -> None:
    """Raise QuestionError for a host that is an address, an invalid name, or the name of a Service."""
    if _is_address(to.value):
        raise QuestionError(BAD_DESTINATION, f"{to} is an address", f"write --to ip:{to.value}")
    if _DNS_NAME.fullmatch(to.value) is None:
        parts = _IN_URL.fullmatch(to.value)
        port = f" --port {parts['port']}" if parts is not None and parts["port"] else ""
        help_ = f"write --to host:{parts['name']}{port}" if parts is not None else "write --to host:<name>"
        raise QuestionError(BAD_DESTINATION, f"{to} is not the name of a host", help_)
    own = _service_named(to.value, world, settings)
    if own is not None:
        raise QuestionError(BAD_DESTINATION, f"{to} is a name inside the cluster", f"write --to service:{own}")


def _is_address(text: str) -> bool:
    try:
        parse_address(text)
    except ValueError:
        return False
    return True


def _service_named(host: str, world: World, settings: Settings) -> str | None:
    """Return the key of the Service with this DNS name of the cluster; None for a name outside.

    Pods resolve `name` and `name.namespace`, each also with `.svc`, or with `.svc` and the domain of the cluster.
    """
    name = host.lower().rstrip(".")
    ends_inside = next((end for end in (f".svc.{settings.cluster_domain}", ".svc") if name.endswith(end)), None)
    labels = name.removesuffix(ends_inside or "").split(".")
    key = f"{labels[-1]}/{labels[-2]}" if len(labels) > 1 else f"NAMESPACE/{name}"
    return key if ends_inside is not None or len(labels) == 1 or key in world.services else None


# Named ports in a question: of a Service, of a container, of a listener.


def port_named(name: str, to: ends.Destination, world: World) -> int:
    """Return the port of a destination by name. Raises QuestionError if no port, or more than one, has the name."""
    named = sorted(set(_named_ports(to, world)))
    numbers = {port for other, port in named if other == name}
    if len(numbers) == 1:
        return numbers.pop()
    listed = ", ".join(f"{other} ({port})" for other, port in named)
    if numbers:
        raise QuestionError(BAD_ATTRIBUTE, f"{to} has several ports with the name `{name}`", f"write one of {listed}")
    help_ = f"it has {listed}" if listed else "give its number"
    raise QuestionError(BAD_ATTRIBUTE, f"{to} has no port with the name `{name}`", help_)


def _named_ports(to: ends.Destination, world: World) -> Iterator[tuple[str, int]]:
    """Yield the names and numbers of ports. A pod has those of its containers and of its Services."""
    match to:
        case ends.Service() if to.key in world.services:
            yield from ((port.name, port.port) for port in world.services[to.key].ports if port.name)
        case ends.Gateway() if to.key in world.gateways:
            yield from ((listener.name, listener.port) for listener in world.gateways[to.key].listeners)
        case ends.Pod():
            for workload in workloads_of(to, world):
                own = [(port.name, port.number) for port in workload.ports if port.name]
                yield from own
                for service in (world.services[key] for key in world.services_of(workload.key)):
                    for port in service.ports:
                        if port.name and all(port.name != name for name, _ in own):
                            yield from ((port.name, n) for n in world.target_ports(service, port.port, workload))


T = TypeVar("T")
ASKED_ROUTES = ("HTTPRoute", "GRPCRoute", "TLSRoute")  # routes that a question can name


class HostIndex(Protocol):
    """Finds the point that decides about requests to a host, among policies for hosts."""

    @property
    def host_refs(self) -> Set[PolicyRef]:
        """Return the policies for hosts."""
        ...

    def host_point(self, host: str) -> HostNamed | None:
        """Return the point that decides about a host, or None."""
        ...

    def hosts_of(self, ref: PolicyRef) -> tuple[str, ...] | None:
        """Return the hosts of a policy, or None."""
        ...


class _NoHosts:
    """An index without policies."""

    host_refs: Set[PolicyRef] = frozenset()

    def host_point(self, _host: str) -> HostNamed | None:
        return None

    def hosts_of(self, _ref: PolicyRef) -> tuple[str, ...] | None:
        return None


NO_HOSTS: HostIndex = _NoHosts()


def entries(
    question: Question,
    shared: Values,
    world: World,
    table_of: TableOf,
    is_guarded: IsGuarded,
    hosts: HostIndex,
) -> Iterator[EntryPoint]:
    """Yield every entry that a question may lead to; `shared` are the known attributes of its requests.

    `is_guarded` tells whether policies target a rule of a route. Raises QuestionError if the question leads nowhere.
    """
    port = _port(question)
    asked = Request({**shared, **port}, question.external_auth)
    to = question.destination
    match to:
        case EntryPoint():
            yield to
        case ends.Address():
            yield from _at_address(question, to, world)
        case ends.Service():
            yield from _behind(_declared("Service", to.key, world.services), question, world)
        case ends.Pod():
            yield from (_at_pod(each, port) for each in workloads_of(to, world))
        case ends.Gateway() if (pods := _mesh_gateway_pods(to, world)) is not None:
            yield from (_at_pod(each, port) for each in pods)
        case ends.Gateway():
            from eastgate.cluster.routing.journey import through_gateway  # most questions need no routes

            gateway = _declared("Gateway", to.key, world.gateways)
            for way in through_gateway(
                gateway,
                asked,
                world,
                is_message=question.is_bare_message,
                table_of=table_of,
                is_guarded=is_guarded,
            ):
                yield _entry(way, {**port, **_handshake(question)})
        case ends.Backend():
            yield _at_backend(question, to, shared, world, table_of)
        case ends.Route():
            from eastgate.cluster.routing.journey import through_route

            for way in through_route(
                _route(to, world),
                asked,
                world,
                is_message=question.is_bare_message,
                table_of=table_of,
                is_guarded=is_guarded,
            ):
                yield _entry(way, {**port, **_handshake(question)})
        case ends.AuthConfig() | ends.Host():
            yield _at_host(question, to, hosts)
        case _:
            assert_never(to)


def _at_pod(pod: Workload, port: Values) -> EntryPoint:
    return EntryPoint(pod.key, (pod.key,), {**port, SERVICE: None})


def _at_address(question: Question, to: ends.Address, world: World) -> Iterator[EntryPoint]:
    """Yield the pod with an address, or the pods of the Service with it, or the address alone."""
    address = address_of(to.value)
    pod = world.by_ip(address)
    called = (service for service in world.services.values() if address in map(address_of, service.addresses))
    if pod is None and (service := next(called, None)) is not None:
        yield from _behind(service, question, world)
        return
    points: tuple[Point, ...] = () if pod is None else (pod.key,)
    yield EntryPoint(str(to), points, {**_port(question), SERVICE: None, DESTINATION_ADDRESS: address})


def _at_backend(question: Question, to: ends.Backend, shared: Values, world: World, table_of: TableOf) -> EntryPoint:
    backend = _declared("Backend", to.key, world.backends)
    point = BackendNamed(backend.namespace, backend.name)
    condition = None
    if question.is_bare_message:
        condition = cache(partial(_leading_to, point, Request(shared), world, table_of))
    values = {**_port(question), BACKEND: backend.key}
    return EntryPoint(f"backend {backend.key}", (point,), values, condition=condition)


def _leading_to(point: BackendNamed, request: Request, world: World, table_of: TableOf) -> Predicate | None:
    from eastgate.cluster.routing.journey import leading_to  # most questions need no routes

    return leading_to(point, request, world, table_of)


def _port(question: Question) -> Values:
    if question.port is not None and not 1 <= question.port <= 65535:
        raise QuestionError(BAD_ATTRIBUTE, f"port {question.port} is not between 1 and 65535")
    return {} if question.port is None else {PORT: question.port}


def outside(question: Question, to: ends.Host, world: World, settings: Settings) -> EntryPoint:
    """Return a host outside of the cluster, at an unknown address. Raises QuestionError for other names."""
    check_host(to, world, settings)
    return EntryPoint(str(to), (), {**_port(question), SERVICE: None, DESTINATION_DOMAIN: comparable_host(to.value)})


def _at_host(question: Question, to: ends.AuthConfig | ends.Host, hosts: HostIndex) -> EntryPoint:
    """Return the point of the policies for a host, which may be another host than that of the request.

    No proxy of Eastgate has normalised the path before.
    """
    host = to.value if isinstance(to, ends.Host) else _asked_host(question, to, hosts)
    point: Point = hosts.host_point(host) or HOSTS.dead_end
    if isinstance(to, ends.Host):
        where, asked = str(HostNamed(host)), None
    else:
        where, asked = f"{HOSTS.kind} {to.key}, host {host}", to.key
    own = host_values(host) if question.host is None else {}
    spelling = _spelling(question.path) if question.path is not None else {}
    return EntryPoint(where, (point,), {**_port(question), **own, **spelling, HOST_POLICY: asked})


def _spelling(path: str) -> Values:
    sent = sent_path(path)
    return {} if is_canonical(sent) else {HANDED_PATH: sent}


def _asked_host(question: Question, to: ends.AuthConfig, hosts: HostIndex) -> str:
    """Return the host of a question about a policy, or its only host. Raises QuestionError if it has several."""
    own = hosts.hosts_of(HOSTS.ref(to.namespace, to.name))
    if own is None:
        raise not_declared(HOSTS.kind, to.key, {f"{ref.namespace}/{ref.name}": ref for ref in hosts.host_refs})
    if question.host is not None:
        return question.host
    if len(own) == 1 and not own[0].startswith("*"):
        return own[0]
    message = f"the host is missing: {HOSTS.kind} {to.key} is for {' and '.join(own) or 'no host that can be read'}"
    raise QuestionError(BAD_ATTRIBUTE, message, "give the host of the request: --host, or http: {host: ..} in a table")


def _mesh_gateway_pods(to: ends.Gateway, world: World) -> Sequence[Workload] | None:
    """Return the pods of a Gateway of Istio; None for other Gateways.

    A Gateway of Istio without a selector selects no pods that could be determined.
    """
    gateway = world.mesh_gateways.get(to.key)
    if gateway is None or to.key in world.gateways:
        return None
    pods = PodsAcross(Selector.of(), Selector.of(gateway.selector))
    keys = sorted(world.select(pods)) if gateway.selector else []
    if not keys:
        raise QuestionError(NOTHING_BEHIND, f"Gateway {gateway.key} of {MESH_GATEWAY_GROUP} selects no pods")
    return [world.workloads[key] for key in keys]


def _entry(way: Way, values: Values) -> EntryPoint:
    backend = {**values, BACKEND: way.backend}
    return EntryPoint(way.where, way.points, backend, way.hides_http, way.service, way.condition, way.guard)


def _declared(kind: str, key: str, declared: Mapping[str, T]) -> T:
    if key not in declared:
        raise not_declared(kind, key, declared)
    return declared[key]


def _route(to: ends.Route, world: World) -> Route:
    """Return the route of a name, of the first kind that has one."""
    named = [world.routes.get(f"{kind}/{to.key}") for kind in ASKED_ROUTES]
    route = next((route for route in named if route is not None), None)
    if route is None:
        declared = {
            f"{each.namespace}/{each.name}": each for each in world.routes.values() if each.kind in ASKED_ROUTES
        }
        raise not_declared("HTTPRoute", to.key, declared)
    return route


def _handshake(question: Question) -> Values:
    """Return the server name in the TLS handshake of a request with only a host: either none, or that host."""
    return {SNI: comparable_host(question.host)} if question.sni is None and question.host is not None else {}


def _behind(service: Service, question: Question, world: World) -> Iterator[EntryPoint]:
    """Return every pod of a Service, on the port that the Service's port leads to. Without a port, return all ports."""
    key, port = f"{service.namespace}/{service.name}", question.port
    pods = [world.workloads[pod] for pod in world.pods_of(key)]
    unknown = world.unknown_endpoints(key) if service.takes_endpoints else ()
    if unknown:
        message = f"Service {key} leads to {unknown[0]}, which is no pod that a manifest declares"
        raise QuestionError(NOTHING_BEHIND, message, "give the pods of its EndpointSlices too")
    if not pods:
        raise QuestionError(NOTHING_BEHIND, f"Service {key} selects no pods")
    if port is not None and all(port != declared.port for declared in service.ports):
        ports = ", ".join(str(declared.port) for declared in service.ports) or "no ports"
        raise QuestionError(NOTHING_BEHIND, f"Service {key} has no port {port}", f"it has {ports}")
    if not service.ports:
        for pod in pods:
            yield EntryPoint(pod.key, (pod.key,), {SERVICE: key})
    protocols = {declared.protocol for declared in service.ports if port in (None, declared.port)}
    transport = transport_of(question)
    only = transport if question.protocol is not None or transport in protocols else None
    endpoints = [(pod, number) for pod in pods for number in world.target_ports(service, port, pod, only)]
    if service.ports and not endpoints:
        raise QuestionError(NOTHING_BEHIND, f"no pod of Service {key} has the port that it leads to")
    for pod, number in endpoints:
        yield EntryPoint(pod.key, (pod.key,), {SERVICE: key, PORT: number})
