"""The nouns of Gateway API: gateways, routes, backends, and the grants that let references cross namespaces.

What a rule of a route says is in `routes`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.objects import Namespaced, ObjectId
from eastgate.cluster.routes import GrpcRule, RouteRule, StreamRule
from eastgate.cluster.shapes import STRINGS, record
from eastgate.ir.labels import Selector

# Gateways of Istio's own API: they run in pods that they select, wherever these are.


MESH_GATEWAY_GROUP = "networking.istio.io"
MESH_GATEWAY = record({"spec": record({"selector": STRINGS})})


@dataclass(frozen=True, slots=True)
class MeshGateway(Namespaced):
    """A Gateway whose proxies are the pods with these labels, of any namespace."""

    namespace: str
    name: str
    selector: Mapping[str, str] = field(default_factory=dict, hash=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId(MESH_GATEWAY_GROUP, "Gateway", self.namespace, self.name)


GATEWAY_GROUP = "gateway.networking.k8s.io"
GATEWAY_NAME_LABEL = "gateway.networking.k8s.io/gateway-name"
BACKEND_KINDS = ("XBackend", "Backend")
ROUTE_KINDS = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute")


class RoutesFrom(enum.StrEnum):
    """The namespaces whose routes a listener takes, as they are written."""

    SAME = "Same"
    ALL = "All"
    SELECTOR = "Selector"


@dataclass(frozen=True, slots=True)
class AllowedRoutes:
    """The routes that may attach to a listener. No `kinds`, as (group, kind), means all that its protocol carries."""

    namespaces: RoutesFrom = RoutesFrom.SAME
    selector: Selector | None = None
    kinds: tuple[tuple[str, str], ...] = ()


class TlsMode(enum.StrEnum):
    """Where TLS ends that comes to a listener, as it is written."""

    TERMINATE = "Terminate"
    PASSTHROUGH = "Passthrough"


@dataclass(frozen=True, slots=True)
class TlsReference:
    """A certificate with its key, or the certificates of CAs, with Gateway API's defaults filled in."""

    namespace: str
    name: str
    group: str = ""
    kind: str = "Secret"


@dataclass(frozen=True, slots=True)
class ClientValidation:
    """Which CAs the certificates of clients must come from; `insecure_fallback`: they need not."""

    ca_certificates: tuple[TlsReference, ...]
    insecure_fallback: bool = False


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """How a listener speaks TLS. `options` are an implementation's own.

    `client_validation` is that of the Gateway for the port of the listener.
    """

    mode: TlsMode = TlsMode.TERMINATE
    certificates: tuple[TlsReference, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    client_validation: ClientValidation | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of a Gateway; no hostname means any."""

    name: str
    port: int
    protocol: str
    hostname: str | None = None
    allowed_routes: AllowedRoutes = AllowedRoutes()
    tls: ListenerTls | None = None

    @property
    def passes_tls_through(self) -> bool:
        """Tell whether connections are led on as they are, by their SNI."""
        return self.tls is not None and self.tls.mode is TlsMode.PASSTHROUGH


@dataclass(frozen=True, slots=True)
class Gateway(Namespaced):
    """A Gateway."""

    namespace: str
    name: str
    listeners: tuple[Listener, ...] = ()
    gateway_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId(GATEWAY_GROUP, "Gateway", self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class ParentRef:
    """A reference to the parent that a route asks to be attached to, with Gateway API's defaults filled in."""

    namespace: str
    name: str
    group: str = GATEWAY_GROUP
    kind: str = "Gateway"
    section_name: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """A route of one of `ROUTE_KINDS`.

    `rules` are those of an HTTPRoute, `grpc_rules` those of a GRPCRoute, `stream_rules` those of any other kind.
    `created` is when the API server first saw it, in RFC 3339; None: it has not yet.
    """

    kind: str
    namespace: str
    name: str
    hostnames: tuple[str, ...] = ()
    parents: tuple[ParentRef, ...] = ()
    rules: tuple[RouteRule, ...] = ()
    grpc_rules: tuple[GrpcRule, ...] = ()
    stream_rules: tuple[StreamRule, ...] = ()
    created: str | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """Return its name among the world's routes: `Kind/namespace/name`."""
        return f"{self.kind}/{self.namespace}/{self.name}"

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId(GATEWAY_GROUP, self.kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Backend(Namespaced):
    """A server behind a gateway that speaks MCP: a Service of its own namespace, or a host elsewhere.

    The world reads no manifest into one. `group` and `kind` are those of the dialect that declares it.
    """

    namespace: str
    name: str
    service_name: str | None
    hostname: str | None
    port: int
    path: str = "/mcp"
    group: str = field(kw_only=True)
    kind: str = field(kw_only=True)
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId(self.group, self.kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class GrantFrom:
    """A kind and namespace that may refer into the grant's namespace."""

    group: str
    kind: str
    namespace: str


@dataclass(frozen=True, slots=True)
class GrantTo:
    """An object that may be referred to in the grant's namespace; no name means all of that kind."""

    group: str
    kind: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ReferenceGrant:
    """Lets ANY of `origins` refer to ANY of `destinations` in its own namespace."""

    namespace: str
    name: str
    origins: tuple[GrantFrom, ...] = ()
    destinations: tuple[GrantTo, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return which object of the API this is."""
        return ObjectId(GATEWAY_GROUP, "ReferenceGrant", self.namespace, self.name)

    def allows(self, origin: GrantFrom, group: str, kind: str, name: str) -> bool:
        """Return whether this grant lets `origin` refer to that object of the grant's namespace."""
        return origin in self.origins and (
            GrantTo(group, kind) in self.destinations or GrantTo(group, kind, name) in self.destinations
        )
