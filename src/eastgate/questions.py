"""Questions, as people ask them: may this source reach that destination?

The words of `--from` and `--to`, of a test table and of the Python API are the same. A question is turned into
arrivals: each is one request at one workload, and the answer is allow only if every arrival is allowed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TypeVar

from eastgate.diagnostics import Code, Diagnostic, did_you_mean
from eastgate.policy import Known, Request, known
from eastgate.policy.attributes import (
    ADDRESS,
    AUTHORITY,
    BACKEND,
    BAD_HOST,
    HANDED_PATH,
    HOST,
    IDENTITY,
    MCP_METHOD,
    MCP_TOOL,
    MESH_NAME,
    METHOD,
    PATH,
    PATHS,
    PORT,
    SENT_PATH,
    SERVICE,
    SNI,
    SOURCE_WORKLOAD,
    TARGET,
    URL_PATH,
    Attribute,
    claim,
    header,
    query,
)
from eastgate.policy.fields import Headers, each_header, header_values, query_of, query_values
from eastgate.policy.hosts import comparable_host, is_host
from eastgate.policy.paths import comparable_path, handed_path, is_respelled, sent_path
from eastgate.settings import Settings
from eastgate.unconsidered import Callers
from eastgate.world import (
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
from eastgate.world.points import Point
from eastgate.world.targets import BackendNamed

__all__ = ["Arrival", "Question", "QuestionError", "arrivals", "callers_of"]

BAD_SOURCE = Code("EG0101", "source not understood", "A source is sa:, pod:, spiffe://, id:, ip: or anonymous.")
BAD_DESTINATION = Code(
    "EG0102", "destination not understood", "A destination is pod:, service:, gateway:, route: or backend:."
)
NOT_DECLARED = Code(
    "EG0103",
    "not declared",
    "What a question is about must be in the manifests; only then is it known what targets it.",
)
NOTHING_BEHIND = Code(
    "EG0104",
    "nothing behind the Service",
    "A Service without pods, or without that port, leads nowhere: there is nothing to decide for.",
)
BAD_ATTRIBUTE = Code(
    "EG0105", "attribute not understood", "An attribute of the question has a value that no request can have."
)
POLICY_REJECTED = Code(
    "EG0120",
    "a policy that targets it cannot be read",
    "What a policy with errors says is unknown, so that nothing can be said of what it targets. Questions about "
    "everything else are answered, and `--strict` answers none.",
)
LABELS_UNKNOWN = Code(
    "EG0122",
    "a policy selects by a label that a cluster adds",
    "Controllers and injectors add labels to pods (`pod-template-hash`, `job-name`, `linkerd.io/control-plane-ns` and "
    "others), which no template shows. Whether a policy that selects by one applies to the pods of a template cannot "
    "be told; give real Pods (`kubectl get pods -o yaml`), or select by labels of the template.",
)
NOT_CONSIDERED = Code(
    "EG0121",
    "what is not read could change the answer",
    "The manifests have objects of kinds that are not read, and they could turn the answer into another one. With "
    "`--unread warn` the answer is about what was read, and the exit status is 3; with `--unread ignore` they count "
    "for nothing.",
)


T = TypeVar("T")


class QuestionError(ValueError):
    """A question that cannot be decided, and why. `diagnostics` has also what is wrong with policies, if that is it."""

    def __init__(
        self,
        code: Code,
        message: str,
        help: str | None = None,  # noqa: A002
        causes: Sequence[Diagnostic] = (),
    ) -> None:
        super().__init__(message if help is None else f"{message} ({help})")
        self.diagnostic = Diagnostic(code, message, None, help)
        self.diagnostics = [*causes, self.diagnostic]


@dataclass(frozen=True, slots=True)
class Question:
    """May `source` reach `to`? What is left out is unknown: the answer is allow only if it is for every value."""

    source: str
    to: str
    port: int | None = None
    method: str | None = None
    path: str | None = None
    host: str | None = None
    sni: str | None = None
    headers: Headers | None = None
    mcp_method: str | None = None
    tool: str | None = None
    source_ip: str | None = None
    http_protocol: str | None = None
    """As proxies write it: HTTP/1.0, HTTP/1.1, HTTP/2 or HTTP/3; HTTP/1.1 where it is left out."""
    claims: Mapping[str, object] | None = None
    token: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    external_auth: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_bare_message(self) -> bool:
        """An MCP message and nothing of HTTP: it is a POST to `/`, on whichever host it is served."""
        http = (self.method, self.path, self.host, self.headers)
        return (self.mcp_method is not None or self.tool is not None) and all(part is None for part in http)

    @property
    def arguments(self) -> list[str]:
        """The words of a command line that asks this, but for the manifests, tokens and certificates."""
        options: list[tuple[str, object]] = [
            ("--from", self.source),
            ("--to", self.to),
            ("--port", self.port),
            ("--method", self.method),
            ("--path", self.path),
            ("--host", self.host),
            ("--sni", self.sni),
            ("--http-protocol", self.http_protocol),
            *(("--header", f"{name}={value}") for name, value in each_header(self.headers or {})),
            ("--mcp-method", self.mcp_method),
            ("--tool", self.tool),
            ("--source-ip", self.source_ip),
            *(("--claim", f"{name}={_claim(value)}") for name, value in (self.claims or {}).items()),
            *(("--external-auth", f"{name}={answer}") for name, answer in self.external_auth.items()),
        ]
        return [str(word) for option, value in options if value is not None for word in (option, value)]

    def __str__(self) -> str:
        port = f" port {self.port}" if self.port is not None else ""
        http = " ".join(part for part in (self.method, self.host, self.path) if part)
        tool = " ".join(part for part in (self.mcp_method, self.tool) if part)
        return f"{self.source} -> {self.to}{port}" + "".join(f" {part}" for part in (http, tool) if part)


def _claim(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request, and where it arrives: the points of enforcement that it passes, in path order.

    The way may end before it leads anywhere, in a `DeadEnd`.
    """

    where: str
    points: tuple[Point, ...]
    request: Request


Values = dict[Attribute, Known]
Destination = tuple[str, tuple[Point, ...], Values]


def arrivals(question: Question, world: World, settings: Settings) -> list[Arrival]:
    """Every request that a question stands for. Raises QuestionError where it stands for none."""
    shared = {**_http(question), **_tokens(question)}
    sources = list(_sources(question, world, settings))
    asked = Request({**shared, **({} if question.port is None else {PORT: question.port})}, question.external_auth)
    return [
        Arrival(where, points, Request({**shared, **source, **destination}, question.external_auth))
        for where, points, destination in _destinations(question, asked, world, settings)
        for source in sources
    ]


# Where from


def _sources(question: Question, world: World, settings: Settings) -> Iterator[Values]:
    address: Values = {}
    if question.source_ip is not None:
        address = {ADDRESS: _address(question.source_ip)}
    for values in _identities(question.source, world, settings):
        yield {**values, **address}


def _identities(source: str, world: World, settings: Settings) -> Iterator[Values]:
    kind, colon, rest = source.partition(":")
    if source == "anonymous":
        yield {IDENTITY: None, MESH_NAME: None}
    elif source.startswith("spiffe://"):
        _proper(source, spiffe_problem(source), "SPIFFE ID", "write spiffe://<trust domain>/<path>, as certificates do")
        yield {IDENTITY: source, MESH_NAME: source}
    elif colon and kind == "id":
        _proper(source, dns_subdomain_problem(rest), "DNS name", "write id:<name> in lower case, as certificates do")
        yield {IDENTITY: None, MESH_NAME: rest}
    elif colon and kind == "ip":
        yield {IDENTITY: None, MESH_NAME: None, ADDRESS: _address(rest)}
    elif colon and kind == "sa":
        namespace, name = _namespaced(source, BAD_SOURCE, settings)
        way_out = "write sa:<namespace>/<name>, with names that Kubernetes takes"
        _proper(source, dns_label_problem(namespace), f"service account, since `{namespace}` is no namespace", way_out)
        _proper(source, dns_subdomain_problem(name), f"service account, since `{name}` is no name", way_out)
        yield _account(namespace, name, settings)
    elif colon and kind == "pod":
        for workload in _workloads(source, world, BAD_SOURCE, settings):
            known = {**_workload_identity(workload, settings), SOURCE_WORKLOAD: workload.key}
            address = world.address_of(workload)
            yield {**known, ADDRESS: address} if address is not None else known
    else:
        raise QuestionError(
            BAD_SOURCE,
            f"`{source}` is not a source",
            "write sa:<namespace>/<name>, pod:<namespace>/<name>, spiffe://.., id:<name>, ip:<address> or anonymous",
        )


def _proper(source: str, problem: str | None, what: str, way_out: str) -> None:
    """Raises QuestionError where a problem keeps anybody from being called so."""
    if problem is not None:
        raise QuestionError(BAD_SOURCE, f"`{source}` is no {what}: {problem}", way_out)


def _account(namespace: str, name: str, settings: Settings) -> Values:
    """A service account, as each dialect names it."""
    return {
        IDENTITY: service_account_id(settings.trust_domain, namespace, name),
        MESH_NAME: settings.mesh_name(namespace, name),
    }


def _workload_identity(workload: Workload, settings: Settings) -> Values:
    if workload.kind == "ExternalWorkload":  # it has no service account, but may have a certificate
        spiffe = workload.mesh_name if (workload.mesh_name or "").startswith("spiffe://") else None
        return {IDENTITY: spiffe, MESH_NAME: workload.mesh_name}
    return _account(workload.namespace, workload.service_account, settings)


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise QuestionError(BAD_ATTRIBUTE, f"`{text}` is not an IP address") from None


def callers_of(question: Question, world: World, settings: Settings) -> Callers:
    """The pods that a question comes from, as far as the network knows them; none for callers outside.

    An account stands for all its pods, or where no manifest has one, for a pod of its namespace.
    """
    kind, _, rest = question.source.partition(":")
    found: dict[str, Workload] = {}
    if (at := question.source_ip or (rest if kind == "ip" else None)) is not None:
        address = _address(at)
        found = {one.key: one for one in world.workloads.values() if world.address_of(one) == address}
    if kind == "pod":
        found |= {one.key: one for one in _workloads(question.source, world, BAD_SOURCE, settings)}
    account = _account_named(question.source, settings)
    if account is None:
        return Callers(tuple(found.values()))
    pods = [world.workloads[key] for key in sorted(world.select(PodsOfAccount(*account)))]
    return Callers((*found.values(), *pods), None if pods else account[0])


def _account_named(source: str, settings: Settings) -> tuple[str, str] | None:
    """The namespace and name of the account that a source names in the form of some dialect."""
    kind, _, rest = source.partition(":")
    if kind == "sa":
        namespace, name = _namespaced(source, BAD_SOURCE, settings)
        return namespace, name
    if source.startswith("spiffe://"):
        domain, *account = account_of(source) or (None,)
        return (account[0], account[1]) if domain == settings.trust_domain else None
    labels = rest.split(".") if kind == "id" else []
    splits = ((labels[place], ".".join(labels[:place])) for place in range(1, len(labels)))
    return next((found for found in splits if settings.mesh_name(*found) == rest), None)


# Where to


def _destinations(question: Question, asked: Request, world: World, settings: Settings) -> Iterator[Destination]:
    kind = question.to.partition(":")[0]
    if question.port is not None and not 1 <= question.port <= 65535:
        raise QuestionError(BAD_ATTRIBUTE, f"port {question.port} is not between 1 and 65535")
    port: Values = {} if question.port is None else {PORT: question.port}
    match kind:
        case "pod":
            for workload in _workloads(question.to, world, BAD_DESTINATION, settings):
                yield workload.key, (workload.key,), {**port, SERVICE: None}
        case "service":
            service = _declared("Service", question.to, world.services, settings)
            for workload, values in _behind(service, question.port, world):
                yield workload.key, (workload.key,), values
        case "gateway":
            from eastgate.journey import through_gateway  # most questions need no routes

            gateway = _declared("Gateway", question.to, world.gateways, settings)
            for way in through_gateway(gateway, asked, world, any_host=question.is_bare_message):
                yield way.where, way.points, {**port, **_handshake(question), BACKEND: way.backend}
        case "backend":
            backend = _declared("Backend", question.to, world.backends, settings)
            point = BackendNamed(backend.namespace, backend.name)
            yield f"backend {backend.key}", (point,), {**port, BACKEND: backend.key}
        case "route":
            from eastgate.journey import through_route

            route = _route(question.to, world, settings)
            for way in through_route(route, asked, world):
                yield way.where, way.points, {**port, **_handshake(question), BACKEND: way.backend}
        case _:
            raise QuestionError(
                BAD_DESTINATION,
                f"`{question.to}` is not a destination",
                "write pod:, service:, gateway:, route: or backend:, and <namespace>/<name>",
            )


def _declared(kind: str, written: str, declared: Mapping[str, T], settings: Settings) -> T:
    namespace, name = _namespaced(written, BAD_DESTINATION, settings)
    found = declared.get(f"{namespace}/{name}")
    if found is None:
        raise _not_declared(kind, f"{namespace}/{name}", declared)
    return found


def _route(written: str, world: World, settings: Settings) -> Route:
    namespace, name = _namespaced(written, BAD_DESTINATION, settings)
    found = world.routes.get(f"HTTPRoute/{namespace}/{name}")
    if found is None:
        declared = {f"{one.namespace}/{one.name}": one for one in world.routes.values() if one.kind == "HTTPRoute"}
        raise _not_declared("HTTPRoute", f"{namespace}/{name}", declared)
    return found


def _handshake(question: Question) -> Values:
    """The name in the TLS handshake of a request whose host alone is given: there is none, or it is that host."""
    return {SNI: comparable_host(question.host)} if question.sni is None and question.host is not None else {}


def _behind(service: Service, port: int | None, world: World) -> Iterator[tuple[Workload, Values]]:
    """Every pod of a Service, on the port that the Service's port leads to; on each, where none is asked about."""
    key = f"{service.namespace}/{service.name}"
    pods = [world.workloads[pod] for pod in world.pods_of(key)]
    unknown = world.unknown_endpoints(key) if service.takes_endpoints else ()
    if unknown:
        message = f"Service {key} leads to {unknown[0]}, which is no pod that a manifest declares"
        raise QuestionError(NOTHING_BEHIND, message, "give the pods of its EndpointSlices too")
    if not pods:
        raise QuestionError(NOTHING_BEHIND, f"Service {key} selects no pods")
    if port is not None and all(port != one.port for one in service.ports):
        ports = ", ".join(str(one.port) for one in service.ports) or "no ports"
        raise QuestionError(NOTHING_BEHIND, f"Service {key} has no port {port}", f"it has {ports}")
    if not service.ports:
        for pod in pods:
            yield pod, {SERVICE: key}
    endpoints = [(pod, number) for pod in pods for number in world.target_ports(service, port, pod)]
    if service.ports and not endpoints:
        raise QuestionError(NOTHING_BEHIND, f"no pod of Service {key} has the port that it leads to")
    for pod, number in endpoints:
        yield pod, {SERVICE: key, PORT: number}


def _workloads(written: str, world: World, code: Code, settings: Settings) -> tuple[Workload, ...]:
    namespace, name = _namespaced(written, code, settings)
    found = world.find_workloads(namespace, name)
    if not found:
        raise _not_declared("Pod", f"{namespace}/{name}", world.workloads)
    return found


def _namespaced(written: str, code: Code, settings: Settings) -> tuple[str, str]:
    """The namespace and the name of `kind:namespace/name`; of `kind:name` it is the namespace of the settings."""
    kind, _, rest = written.partition(":")
    namespace, slash, name = rest.partition("/")
    if not slash and kind != "sa":  # a name that is misspelt would be an account as good as any
        namespace, name = settings.namespace, rest
    if not namespace or not name or "/" in name:
        raise QuestionError(code, f"`{written}` names no {kind}", f"write {kind}:<namespace>/<name>")
    return namespace, name


def _not_declared(kind: str, key: str, declared: Mapping[str, object]) -> QuestionError:
    near = did_you_mean(key, declared)
    return QuestionError(NOT_DECLARED, f"no manifest declares {kind} {key}", f"did you mean {near}?" if near else None)


# What

_PROTOCOLS = ("HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3")


def _http(question: Question) -> Values:
    values: Values = {}
    if question.host is not None:
        values[HOST] = comparable_host(question.host)
        values[AUTHORITY] = question.host
        if not is_host(question.host):
            values[BAD_HOST] = question.host
    if question.http_protocol is not None and question.http_protocol not in _PROTOCOLS:
        message = f"`{question.http_protocol}` is not a version of HTTP"
        raise QuestionError(BAD_ATTRIBUTE, message, f"write one of {', '.join(_PROTOCOLS)}")
    if question.method is not None:
        values[METHOD] = question.method
    if question.path is not None:
        if not question.path.startswith("/") and question.path != "*":
            raise QuestionError(BAD_ATTRIBUTE, f"`{question.path}` is not a path", f"write /{question.path}")
        handed = handed_path(question.path)
        values |= {PATH: comparable_path(question.path), SENT_PATH: sent_path(question.path)}
        values |= {URL_PATH: handed, TARGET: handed + query_of(question.path)}
        if is_respelled(handed):
            values[HANDED_PATH] = handed
        values.update({query(name): known(every) for name, every in query_values(question.path).items()})
    if question.sni is not None:
        values[SNI] = comparable_host(question.sni)
    values.update({header(name): known(every) for name, every in header_values(question.headers or {}).items()})
    return values


_WITHOUT_BODY = ("GET", "HEAD", "DELETE", "OPTIONS")
_WITH_NAME = ("tools/call", "prompts/get", "resources/read", "resources/subscribe", "resources/unsubscribe")


def _tokens(question: Question) -> Values:
    values: Values = {claim(name): one for name, one in (question.claims or {}).items() if isinstance(one, str | int)}
    if question.method in _WITHOUT_BODY and question.mcp_method is None and question.tool is None:
        values |= {MCP_METHOD: None, MCP_TOOL: None}  # no JSON-RPC message
    if question.mcp_method is not None or question.tool is not None:
        values[MCP_METHOD] = question.mcp_method or "tools/call"
        if question.tool is not None or values[MCP_METHOD] not in _WITH_NAME:
            values[MCP_TOOL] = question.tool
        if question.is_bare_message:
            values |= {METHOD: "POST", SENT_PATH: "/", **dict.fromkeys(PATHS, "/")}
    return values
