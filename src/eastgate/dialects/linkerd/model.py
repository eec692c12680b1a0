"""The resources of Linkerd's inbound policy, as they are once they have been read."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import field

from eastgate.cluster import GrpcRule, ParentRef, RouteRule, Selector
from eastgate.cluster.targets import Target
from eastgate.diagnostics.spans import Span
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.ir import Origin, PolicyRef, Predicate, Rule
from eastgate.ir.attributes import Attribute
from eastgate.records import dataclass

__all__ = [
    "GROUP",
    "WORKLOAD_KINDS",
    "AuthorizationPolicy",
    "HttpRoute",
    "InboundRoute",
    "MeshTLSAuthentication",
    "NetworkAuthentication",
    "Protocol",
    "Requirement",
    "Resource",
    "Server",
    "ServerAuthorization",
    "TargetRef",
]

GROUP = "policy.linkerd.io"

# The targets of the proposal, by group and kind, that are workloads or choose some.
WORKLOAD_KINDS = (
    ("", "ServiceAccount"),
    ("", "Pod"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("batch", "Job"),
)


class Protocol(enum.StrEnum):
    """What a Server says is spoken on its port."""

    UNKNOWN = "unknown"  # the proxy finds out whether it is HTTP
    HTTP_1 = "HTTP/1"
    HTTP_2 = "HTTP/2"
    GRPC = "gRPC"
    OPAQUE = "opaque"
    TLS = "TLS"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Resource:
    """What all of them have. Two are the same only if they are the same object: a changed one is another."""

    ref: PolicyRef
    span: Span
    targets: tuple[Target, ...] = ()
    references: tuple[PolicyRef, ...] = ()
    audit: bool = False

    @property
    def origins(self) -> Iterator[Origin]:
        """Where its rules are written; most have none of their own."""
        return iter(())


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Server(Resource):
    """A port of some pods, from which on only what is authorized gets in."""

    port: int | str
    protocol: Protocol
    access: InboundPolicy
    access_span: Span
    external: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    created: str | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """What an authorization asks of the client: in its own words, or in those of an authentication that it names."""

    span: Span
    attribute: Attribute
    when: Predicate | PolicyRef


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ServerAuthorization(Resource):
    """Who may use some Servers: the one of that name, or those with these labels.

    One that names no networks means those of the cluster: its rule has those of the settings, and `client` is who may
    call from the networks that the cluster turns out to have.
    """

    server: str | Selector
    rule: Rule
    client: Predicate | None = None

    @property
    def origins(self) -> Iterator[Origin]:
        """Where its one rule is written."""
        return iter((self.rule.origin,))


@dataclass(frozen=True, slots=True)
class TargetRef:
    """What an AuthorizationPolicy is about, with group and kind as they are properly spelt."""

    group: str
    kind: str
    name: str

    @property
    def is_workload(self) -> bool:
        """Whether it is about workloads themselves, and so about all of their ports."""
        return (self.group, self.kind) in WORKLOAD_KINDS


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AuthorizationPolicy(Resource):
    """Who may use its target: whoever meets ALL requirements; without any, everybody."""

    target: TargetRef
    requirements: tuple[Requirement, ...]
    refs_span: Span

    @property
    def origin(self) -> Origin:
        """Where its one rule is written."""
        return Origin(self.ref, 0, self.refs_span)

    @property
    def origins(self) -> Iterator[Origin]:
        """Where its one rule is written."""
        return iter((self.origin,))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MeshTLSAuthentication(Resource):
    """Clients by the names in their certificates: ANY of them."""

    who: Predicate
    who_span: Span


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NetworkAuthentication(Resource):
    """Clients by their addresses: in ANY of the networks."""

    where: Predicate
    where_span: Span


@dataclass(frozen=True, slots=True)
class InboundRoute:
    """An HTTPRoute or a GRPCRoute with a Server as its parent; the one has `rules`, the other `grpc_rules`."""

    group: str
    kind: str
    namespace: str
    name: str
    parents: tuple[ParentRef, ...]
    hostnames: tuple[str, ...] = ()
    rules: tuple[RouteRule, ...] = ()
    grpc_rules: tuple[GrpcRule, ...] = ()
    created: str | None = None

    @property
    def ref(self) -> PolicyRef:
        """Its name, with its group: Linkerd and Gateway API both have HTTPRoutes."""
        return PolicyRef(self.kind, self.namespace, self.name, self.group)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class HttpRoute(Resource):
    """Linkerd's own HTTPRoute."""

    route: InboundRoute
