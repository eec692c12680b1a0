"""From a question to arrivals: each is one request at one place, and the answer is allow only if all are allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from eastgate.authority.questions import ends
from eastgate.authority.questions.codes import (
    BAD_ATTRIBUTE,
    BAD_SOURCE,
    NOT_DECLARED,
    NOTHING_BEHIND,
    QuestionError,
)
from eastgate.authority.questions.derived import address_of, transport_of
from eastgate.authority.questions.ends import destination_of, source_of
from eastgate.authority.questions.hosts import check_host
from eastgate.authority.questions.values import host_values, request_values
from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.records import dataclass
from eastgate.cluster import (
    Gateway,
    PodsAcross,
    PodsOfAccount,
    Route,
    Service,
    Workload,
    World,
    account_of,
    dns_label_problem,
    dns_subdomain_problem,
    service_account_id,
    spiffe_problem,
)
from eastgate.cluster.mesh_gateways import MESH_GATEWAY_GROUP
from eastgate.cluster.points import Point
from eastgate.cluster.question import Question
from eastgate.cluster.targets import BackendNamed, HostNamed
from eastgate.cluster.unread import Callers
from eastgate.dialects import HOSTS
from eastgate.ir import Answer, Known, PolicyRef, Predicate, Request
from eastgate.ir.attributes import (
    ADDRESS,
    APPLICATION,
    BACKEND,
    DESTINATION_ADDRESS,
    DESTINATION_DOMAIN,
    HANDED_PATH,
    HOST,
    HOST_POLICY,
    IDENTITY,
    MESH_NAME,
    PORT,
    SERVICE,
    SNI,
    SOURCE_WORKLOAD,
    UNKNOWN,
    Attribute,
    Unknown,
)
from eastgate.ir.hosts import comparable_host
from eastgate.ir.labels import Selector
from eastgate.ir.paths import is_canonical, sent_path
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.cluster.routing import RoutingTable
    from eastgate.cluster.routing.journey import IsGuarded, TableOf, Way

T = TypeVar("T")
Values: TypeAlias = Mapping[Attribute, Known]

_MOST_ENDS = 65_536  # that are remembered
_MOST_ROUTED, _LONGEST = 4096, 512  # requests at gateways whose ways are remembered, and characters of what they say
ASKED_ROUTES = ("HTTPRoute", "GRPCRoute", "TLSRoute")  # that requests can be asked about


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request, and where it arrives: the points of enforcement that it passes, in path order.

    The way may end before it leads anywhere, in a `DeadEnd`.
    """

    where: str
    points: tuple[Point, ...]
    request: Request


@dataclass(frozen=True, slots=True, eq=False)
class EntryPoint:
    """A point where requests arrive, and the attributes that follow from arriving there.

    `hides_http`: nothing on the way sees HTTP, whatever a question says of it. `onward`: the Service that a gateway on
    the way calls, and the port there. `condition` returns the condition that requests which arrive here meet, and is
    part of what is known of them. `guard` returns it for those who ask which requests arrive here.
    """

    where: str
    points: tuple[Point, ...]
    values: Values
    hides_http: bool = False
    onward: tuple[str, int | None] | None = None
    condition: Callable[[], Predicate | None] | None = None
    guard: Callable[[], Predicate | None] | None = None

    @property
    def within(self) -> Predicate | None:
        """Return the condition that requests which arrive here meet; None if it is unknown."""
        return None if self.condition is None else self.condition()

    def request(self, shared: Values, caller: Values, answers: Mapping[str, Answer]) -> Request:
        """Return a request as it is seen here."""
        values = {**shared, **caller, **self.values}
        return without_http(values) if self.hides_http else Request(values, answers, within=self.within)


def without_http(values: Values) -> Request:
    """Return a request of which a point of enforcement sees no HTTP. No authorizer can be asked about it."""
    seen: dict[Attribute, Known] = {attribute: value for attribute, value in values.items() if not attribute.needs_http}
    return Request({**seen, APPLICATION: "bytes"} if APPLICATION in seen else seen)


def arrivals(question: Question, world: World, settings: Settings) -> list[Arrival]:
    """Return every request that a question stands for. Raises QuestionError where it stands for none."""
    resolver = Resolver(world, settings, _same)
    shared = request_values(question)
    callers = resolver.callers(question)
    return [
        Arrival(entry.where, entry.points, entry.request(shared, caller, question.external_auth))
        for entry in resolver.entries(question, shared)
        for caller in callers
    ]


def _same(entry: EntryPoint) -> EntryPoint:
    return entry


class HostIndex(Protocol):
    """Finds where requests to a host are decided, by policies that are for hosts."""

    @property
    def host_refs(self) -> Set[PolicyRef]:
        """Return the policies that are for hosts."""
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


class Resolver(Generic[T]):
    """Finds what the ends of questions stand for, and remembers it for as long as the world stays as it is.

    `make` says what is to be made, once, of each entry; `is_guarded` whether policies target a rule of a route; `hosts`
    which policies are for a host.
    """

    __slots__ = (
        "_callers",
        "_entries",
        "_hosts",
        "_is_guarded",
        "_make",
        "_routed",
        "_routed_by",
        "_settings",
        "_tables",
        "_world",
    )

    def __init__(
        self,
        world: World,
        settings: Settings,
        make: Callable[[EntryPoint], T],
        is_guarded: IsGuarded = lambda _rule: False,
        hosts: HostIndex | None = None,
    ) -> None:
        self._make = make
        self._is_guarded = is_guarded
        self._hosts = hosts or _NoHosts()
        self._world = world
        self._settings = settings
        self._callers: dict[tuple[str, str | None, bool], tuple[Values, ...]] = {}
        self._entries: dict[tuple[object, ...], tuple[T, ...]] = {}
        self._tables: dict[Gateway, RoutingTable] = {}
        self._routed_by: dict[str, tuple[Attribute, ...]] = {}
        self._routed: dict[tuple[object, ...], tuple[T, ...]] = {}

    def callers(self, question: Question) -> tuple[Values, ...]:
        """Return what is known of each caller that a question may come from."""
        key = (question.source, question.source_ip, question.plaintext)
        callers = self._callers.get(key)
        if callers is None:
            if len(self._callers) >= _MOST_ENDS:
                self._callers.clear()
            callers = self._callers[key] = tuple(_callers(question, self._world, self._settings))
        return callers

    def entries(self, question: Question, shared: Values, *, with_network: bool = False) -> tuple[T, ...]:
        """Return every place that a question may lead to; `shared` is what is known of its requests.

        `with_network`: a host that no policy is for is outside of the cluster, where the network decides.
        """
        # Of a message alone, routes are what is known of the path, and the handshake chooses among them.
        handshake = (question.sni,) if question.is_bare_message else None
        key = (question.to, question.port, question.protocol, handshake)
        entries = self._entries.get(key)
        if entries is None:
            routed_by = self._routed_by.get(question.to)
            if routed_by is not None:
                return self._routed_entries(question, shared, routed_by)
            to = destination_of(question.to, self._settings)
            if with_network and isinstance(to, ends.Host) and not self._hosts.host_refs:
                return (self._make(_outside(question, to, self._world, self._settings)),)
            entries = self._resolve(question, to, shared)
            if isinstance(to, ends.Gateway) and to.key in self._world.gateways:
                gateway = self._world.gateways[to.key]
                self._routed_by[question.to] = (HOST, SNI, *sorted(self._table_of(gateway).looks_at))
            elif not isinstance(to, ends.Route | ends.AuthConfig | ends.Host):  # these depend on the request
                if len(self._entries) >= _MOST_ENDS:
                    self._entries.clear()
                self._entries[key] = entries
        return entries

    def _routed_entries(self, question: Question, shared: Values, routed_by: tuple[Attribute, ...]) -> tuple[T, ...]:
        """Return where a Gateway leads, which is remembered by all of a request that its routes look at."""
        looked_at = [shared.get(attribute, UNKNOWN) for attribute in routed_by]
        words = (question.to, question.port, question.host, question.sni, question.is_bare_message)
        key = (*words, *looked_at)
        entries = self._routed.get(key)
        if entries is None:
            entries = self._resolve(question, destination_of(question.to, self._settings), shared)
            if len(self._routed) >= _MOST_ROUTED:
                self._routed.clear()
            if all(isinstance(value, int | None | Unknown) or len(value) <= _LONGEST for value in key):
                self._routed[key] = entries
        return entries

    def _resolve(self, question: Question, to: ends.Destination, shared: Values) -> tuple[T, ...]:
        if isinstance(to, ends.AuthConfig | ends.Host):
            return (self._make(_at_host(question, to, self._hosts)),)
        return tuple(map(self._make, _entries(question, to, shared, self._world, self._table_of, self._is_guarded)))

    def _table_of(self, gateway: Gateway) -> RoutingTable:
        """Return the routes of a Gateway, arranged once."""
        from eastgate.cluster.routing import RoutingTable  # most questions need no routes

        if self._world.gateways.get(gateway.key) is not gateway:  # nobody declared it: each question has its own
            return RoutingTable.of(self._world, gateway)
        table = self._tables.get(gateway)
        if table is None:
            table = self._tables[gateway] = RoutingTable.of(self._world, gateway)
        return table


# Who calls


def _callers(question: Question, world: World, settings: Settings) -> Iterator[Values]:
    address: Values = {} if question.source_ip is None else {ADDRESS: address_of(question.source_ip)}
    unproven: Values = {IDENTITY: None, MESH_NAME: None} if question.plaintext else {}
    for values in _identities(source_of(question.source, settings), world, settings):
        yield {**values, **address, **unproven}


def _identities(source: ends.Source, world: World, settings: Settings) -> Iterator[Values]:
    match source:
        case ends.Anonymous():
            yield {IDENTITY: None, MESH_NAME: None}
        case ends.UnknownCaller():
            yield {}
        case ends.SpiffeId():
            way_out = "write spiffe://<trust domain>/<path>, as certificates do"
            _check(source, spiffe_problem(source.value), "SPIFFE ID", way_out)
            yield {IDENTITY: source.value, MESH_NAME: source.value}
        case ends.CertificateName():
            way_out = "write id:<name> in lower case, as certificates do"
            _check(source, dns_subdomain_problem(source.value), "DNS name", way_out)
            yield {IDENTITY: None, MESH_NAME: source.value}
        case ends.Address():
            yield {IDENTITY: None, MESH_NAME: None, ADDRESS: address_of(source.value)}
        case ends.ServiceAccount(namespace=namespace, name=name):
            way_out = "write sa:<namespace>/<name>, with names that Kubernetes takes"
            what = f"service account, since `{namespace}` is no namespace"
            _check(source, dns_label_problem(namespace), what, way_out)
            _check(source, dns_subdomain_problem(name), f"service account, since `{name}` is no name", way_out)
            yield _account(namespace, name, settings)
        case ends.Pod():
            for workload in workloads_of(source, world):
                values = {**_workload_identity(workload, settings), SOURCE_WORKLOAD: workload.key}
                address = world.address_of(workload)
                yield {**values, ADDRESS: address} if address is not None else values


def _check(source: str, problem: str | None, what: str, way_out: str) -> None:
    """Raise QuestionError where a problem keeps anybody from being called so."""
    if problem is not None:
        raise QuestionError(BAD_SOURCE, f"`{source}` is no {what}: {problem}", way_out)


def _account(namespace: str, name: str, settings: Settings) -> Values:
    """Name a service account as each dialect does."""
    return {
        IDENTITY: service_account_id(settings.trust_domain, namespace, name),
        MESH_NAME: settings.mesh_name(namespace, name),
    }


def _workload_identity(workload: Workload, settings: Settings) -> Values:
    if workload.is_pod:
        return _account(workload.namespace, workload.service_account, settings)
    return {IDENTITY: workload.identity_in(settings.trust_domain), MESH_NAME: workload.mesh_name}


def callers_of(question: Question, world: World, settings: Settings) -> Callers:
    """Return the pods that a question comes from, as far as the network knows them; none for callers outside.

    An account stands for all its pods, or where no manifest has one, for a pod of its namespace.
    """
    source = source_of(question.source, settings)
    if isinstance(source, ends.UnknownCaller):
        return Callers(anybody=True)
    pods: dict[str, Workload] = {}
    at = question.source_ip or (source.value if isinstance(source, ends.Address) else None)
    if at is not None:
        address = address_of(at)
        pods = {pod.key: pod for pod in world.workloads.values() if world.address_of(pod) == address}
    if isinstance(source, ends.Pod):
        pods |= {pod.key: pod for pod in workloads_of(source, world)}
    account = account_named(source, settings)
    if account is None:
        return Callers(tuple(pods.values()))
    of_account = [world.workloads[key] for key in sorted(world.select(PodsOfAccount(*account)))]
    return Callers((*pods.values(), *of_account), None if of_account else account[0])


def account_named(source: ends.Source, settings: Settings) -> tuple[str, str] | None:
    """Return the namespace and name of the account that a source names in the form of some dialect."""
    match source:
        case ends.ServiceAccount():
            return source.namespace, source.name
        case ends.SpiffeId():
            domain, *account = account_of(source.value) or (None,)
            return (account[0], account[1]) if domain == settings.trust_domain else None
        case ends.CertificateName(value=name):
            labels = name.split(".")
            splits = ((labels[at], ".".join(labels[:at])) for at in range(1, len(labels)))
            return next((account for account in splits if settings.mesh_name(*account) == name), None)
        case _:
            return None


# What is called


def _entries(
    question: Question,
    to: ends.Pod | ends.Service | ends.Gateway | ends.Route | ends.Backend | ends.Address,
    shared: Values,
    world: World,
    table_of: TableOf,
    is_guarded: IsGuarded,
) -> Iterator[EntryPoint]:
    port = _port(question)
    asked = Request({**shared, **port}, question.external_auth)
    match to:
        case ends.Address(value=text):
            address = address_of(text)
            pod = world.by_ip(address)
            called = (service for service in world.services.values() if address in map(address_of, service.addresses))
            if pod is None and (service := next(called, None)) is not None:
                for workload, values in _behind(service, question, world):
                    yield EntryPoint(workload.key, (workload.key,), values)
                return
            points: tuple[Point, ...] = () if pod is None else (pod.key,)
            yield EntryPoint(to, points, {**port, SERVICE: None, DESTINATION_ADDRESS: address})
        case ends.Service():
            service = _declared("Service", to.key, world.services)
            for workload, values in _behind(service, question, world):
                yield EntryPoint(workload.key, (workload.key,), values)
        case ends.Pod() | ends.Gateway() if (workloads := _proxies(to, world)) is not None:
            yield from (EntryPoint(each.key, (each.key,), {**port, SERVICE: None}) for each in workloads)
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
            backend = _declared("Backend", to.key, world.backends)
            point = BackendNamed(backend.namespace, backend.name)
            condition = partial(_leading_to, point, Request(shared), world, table_of)
            values = {**port, BACKEND: backend.key}
            yield EntryPoint(
                f"backend {backend.key}", (point,), values, condition=condition if question.is_bare_message else None
            )
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


def _leading_to(point: BackendNamed, request: Request, world: World, table_of: TableOf) -> Predicate | None:
    from eastgate.cluster.routing.journey import leading_to  # most questions need no routes

    return leading_to(point, request, world, table_of)


def _port(question: Question) -> Values:
    if question.port is not None and not 1 <= question.port <= 65535:
        raise QuestionError(BAD_ATTRIBUTE, f"port {question.port} is not between 1 and 65535")
    return {} if question.port is None else {PORT: question.port}


def _outside(question: Question, to: ends.Host, world: World, settings: Settings) -> EntryPoint:
    """Return a host outside of the cluster, at an unknown address. Raises QuestionError for a name inside, or none."""
    check_host(to, world, settings)
    return EntryPoint(to, (), {**_port(question), SERVICE: None, DESTINATION_DOMAIN: comparable_host(to.value)})


def _at_host(question: Question, to: ends.AuthConfig | ends.Host, hosts: HostIndex) -> EntryPoint:
    """Return the point at which the policies for hosts decide, which need not be that of the request.

    No proxy of ours has normalised the path before.
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
    """Return the host of a question to a policy, or else its only host. Raises QuestionError where it has more."""
    own = hosts.hosts_of(HOSTS.ref(to.namespace, to.name))
    if own is None:
        raise _not_declared(HOSTS.kind, to.key, {f"{ref.namespace}/{ref.name}": ref for ref in hosts.host_refs})
    if question.host is not None:
        return question.host
    if len(own) == 1 and not own[0].startswith("*"):
        return own[0]
    message = f"the host is missing: {HOSTS.kind} {to.key} is for {' and '.join(own) or 'no host that can be read'}"
    raise QuestionError(BAD_ATTRIBUTE, message, "give the host of the request: --host, or http: {host: ..} in a table")


def _proxies(to: ends.Pod | ends.Gateway, world: World) -> Sequence[Workload] | None:
    """Return the workloads that a question is about, or the pods of a Gateway of Istio; None for other Gateways.

    A Gateway of Istio without a selector means no pods in particular.
    """
    if isinstance(to, ends.Pod):
        return workloads_of(to, world)
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
        raise _not_declared(kind, key, declared)
    return declared[key]


def _route(to: ends.Route, world: World) -> Route:
    """Return the route of a name, of the first kind that has one."""
    named = [world.routes.get(f"{kind}/{to.key}") for kind in ASKED_ROUTES]
    route = next((route for route in named if route is not None), None)
    if route is None:
        declared = {
            f"{each.namespace}/{each.name}": each for each in world.routes.values() if each.kind in ASKED_ROUTES
        }
        raise _not_declared("HTTPRoute", to.key, declared)
    return route


def _handshake(question: Question) -> Values:
    """Return the name in the TLS handshake of a request whose host alone is given: there is none, or it is that."""
    return {SNI: comparable_host(question.host)} if question.sni is None and question.host is not None else {}


def _behind(service: Service, question: Question, world: World) -> Iterator[tuple[Workload, Values]]:
    """Return every pod of a Service, on the port that the Service's port leads to; on each, where none is given."""
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
            yield pod, {SERVICE: key}
    protocols = {declared.protocol for declared in service.ports if port in (None, declared.port)}
    transport = transport_of(question)
    only = transport if question.protocol is not None or transport in protocols else None
    endpoints = [(pod, number) for pod in pods for number in world.target_ports(service, port, pod, only)]
    if service.ports and not endpoints:
        raise QuestionError(NOTHING_BEHIND, f"no pod of Service {key} has the port that it leads to")
    for pod, number in endpoints:
        yield pod, {SERVICE: key, PORT: number}


def workloads_of(end: ends.Pod, world: World) -> tuple[Workload, ...]:
    """Return the pods that an end names. Raises QuestionError where no manifest has one."""
    if end.owner is None:
        workloads = world.find_workloads(end.namespace, end.name)
    else:
        workloads = world.owned_by(end.owner, end.namespace, end.name)
    if not workloads and end.owner is not None and world.find_workloads(end.namespace, end.name):
        message = f"no manifest declares {end.owner} {end.key}"
        raise QuestionError(NOT_DECLARED, message, f"pods of that name have another owner: write pod:{end.key}")
    if not workloads:
        raise _not_declared(end.owner or "Pod", end.key, world.workloads)
    return workloads


def _not_declared(kind: str, key: str, declared: Mapping[str, object]) -> QuestionError:
    near = did_you_mean(key, declared)
    return QuestionError(NOT_DECLARED, f"no manifest declares {kind} {key}", f"did you mean {near}?" if near else None)
