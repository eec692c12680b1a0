"""The nouns of Gateway API: gateways, routes, backends, and the grants that let references cross namespaces.

The rules of routes are in `routes`.
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

# Gateways of Istio's own API. They run in pods that they select, in any namespace.


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
        """Return the id of the object."""
        return ObjectId(MESH_GATEWAY_GROUP, "Gateway", self.namespace, self.name)


GATEWAY_GROUP = "gateway.networking.k8s.io"
GATEWAY_NAME_LABEL = "gateway.networking.k8s.io/gateway-name"
BACKEND_KINDS = ("XBackend", "Backend")
ROUTE_KINDS = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute")


class RoutesFrom(enum.StrEnum):
    """The namespaces from which a listener accepts routes, as written."""

    SAME = "Same"
    ALL = "All"
    SELECTOR = "Selector"


@dataclass(frozen=True, slots=True)
class AllowedRoutes:
    """The routes that may attach to a listener. Without `kinds`, as (group, kind), all that its protocol carries."""

    namespaces: RoutesFrom = RoutesFrom.SAME
    selector: Selector | None = None
    kinds: tuple[tuple[str, str], ...] = ()


class TlsMode(enum.StrEnum):
    """The place where TLS connections to a listener end, as written."""

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
    """The CAs for the certificates of clients; `insecure_fallback`: a client may have another certificate, or none."""

    ca_certificates: tuple[TlsReference, ...]
    insecure_fallback: bool = False


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """The TLS settings of a listener. `options` are an implementation's own.

    `client_validation` is that of the Gateway for the port of the listener.
    """

    mode: TlsMode = TlsMode.TERMINATE
    certificates: tuple[TlsReference, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    client_validation: ClientValidation | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of a Gateway; without a hostname it is for all hosts."""

    name: str
    port: int
    protocol: str
    hostname: str | None = None
    allowed_routes: AllowedRoutes = AllowedRoutes()
    tls: ListenerTls | None = None

    @property
    def passes_tls_through(self) -> bool:
        """Return whether connections are forwarded as they are, by their SNI."""
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
        """Return the id of the object."""
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
    `created` is its creation time at the API server, in RFC 3339; None before it is created.
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
        """Return the key of the route in the world: `Kind/namespace/name`."""
        return f"{self.kind}/{self.namespace}/{self.name}"

    @property
    def id(self) -> ObjectId:
        """Return the id of the object."""
        return ObjectId(GATEWAY_GROUP, self.kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Backend(Namespaced):
    """An MCP server behind a gateway: a Service of its own namespace, or a host elsewhere.

    A dialect declares it, and `group` and `kind` are those of that dialect. The world reads no manifest as a backend.
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
        """Return the id of the object."""
        return ObjectId(self.group, self.kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class GrantFrom:
    """A kind and namespace whose objects may refer into the grant's namespace."""

    group: str
    kind: str
    namespace: str


@dataclass(frozen=True, slots=True)
class GrantTo:
    """An object of the grant's namespace that may be the target of references; without a name, all of that kind."""

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
        """Return the id of the object."""
        return ObjectId(GATEWAY_GROUP, "ReferenceGrant", self.namespace, self.name)

    def allows(self, origin: GrantFrom, group: str, kind: str, name: str) -> bool:
        """Return whether this grant lets `origin` refer to that object of the grant's namespace."""
        return origin in self.origins and (
            GrantTo(group, kind) in self.destinations or GrantTo(group, kind, name) in self.destinations
        )
