"""The resources of Linkerd's inbound policy."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import GATEWAY_GROUP, GrpcRule, ParentRef, Route, RouteRule, Selector, dns_label_problem
from eastgate.cluster.targets import Target
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.ir import Origin, PolicyRef, Predicate, Rule, repr_of_named
from eastgate.ir.attributes import Attribute
from eastgate.reading.manifests.node import Node

GROUP = "policy.linkerd.io"
INBOUND_KINDS = ("HTTPRoute", "GRPCRoute")  # of Gateway API, with a Server as a parent

# The targets of the proposal, by group and kind, that are workloads or select workloads.
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
    """The protocol of a port, as its Server declares it."""

    UNKNOWN = "unknown"  # the proxy detects whether it is HTTP
    HTTP_1 = "HTTP/1"
    HTTP_2 = "HTTP/2"
    GRPC = "gRPC"
    OPAQUE = "opaque"
    TLS = "TLS"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LinkerdResource:
    """The fields of all resources. Each object equals only itself: a changed resource is another object."""

    ref: PolicyRef
    span: Span
    targets: tuple[Target, ...] = ()
    references: tuple[PolicyRef, ...] = ()
    audit: bool = False

    @property
    def origins(self) -> Iterator[Origin]:
        """Return the origins of its rules. Most resources have no rules of their own."""
        return iter(())


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Server(LinkerdResource):
    """A port of the selected pods. Only authorized requests to the port are allowed."""

    port: int | str
    protocol: Protocol
    access: InboundPolicy
    access_span: Span
    external: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    created: str | None = None

    __repr__ = repr_of_named


@dataclass(frozen=True, slots=True)
class ClientRequirement:
    """A condition on the client: a predicate, or a reference to an authentication with the predicate."""

    span: Span
    attribute: Attribute
    when: Predicate | PolicyRef


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ServerAuthorization(LinkerdResource):
    """An authorization of clients on the Server with that name, or on the Servers with these labels.

    Without networks it allows those of the cluster. Its rule has the networks of the settings, and `client` is the
    condition for callers from the networks of a live cluster.
    """

    server: str | Selector
    rule: Rule
    client: Predicate | None = None

    __repr__ = repr_of_named

    @property
    def origins(self) -> Iterator[Origin]:
        return iter((self.rule.origin,))


@dataclass(frozen=True, slots=True)
class TargetRef:
    """The target of an AuthorizationPolicy. Its group and kind have their canonical spelling."""

    group: str
    kind: str
    name: str

    @property
    def is_workload(self) -> bool:
        """Return whether the target is a workload, and so all of its ports."""
        return (self.group, self.kind) in WORKLOAD_KINDS


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AuthorizationPolicy(LinkerdResource):
    """An authorization of clients that meet ALL requirements. Without requirements, it authorizes every client."""

    target: TargetRef
    requirements: tuple[ClientRequirement, ...]
    refs_span: Span

    __repr__ = repr_of_named

    @property
    def origin(self) -> Origin:
        """Return the origin of its only rule."""
        return Origin(self.ref, 0, self.refs_span)

    @property
    def origins(self) -> Iterator[Origin]:
        return iter((self.origin,))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MeshTLSAuthentication(LinkerdResource):
    """Clients with ANY of these identities."""

    who: Predicate
    who_span: Span

    __repr__ = repr_of_named


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NetworkAuthentication(LinkerdResource):
    """Clients with an address in ANY of these networks."""

    where: Predicate
    where_span: Span

    __repr__ = repr_of_named


def is_server(parent: ParentRef) -> bool:
    """Return whether the parent of a route is a Server. Linkerd ignores the letter case of kinds."""
    return (parent.group.lower(), parent.kind.lower()) == (GROUP, "server")


@dataclass(frozen=True, slots=True)
class InboundRoute:
    """An HTTPRoute or a GRPCRoute with a Server as its parent. An HTTPRoute has `rules`, a GRPCRoute `grpc_rules`."""

    group: str
    kind: str
    namespace: str
    name: str
    parents: tuple[ParentRef, ...]
    hostnames: tuple[str, ...] = ()
    rules: tuple[RouteRule, ...] = ()
    grpc_rules: tuple[GrpcRule, ...] = ()
    created: str | None = None

    @classmethod
    def of(cls, route: Route) -> InboundRoute:
        """Convert a route of Gateway API."""
        return cls(
            GATEWAY_GROUP,
            route.kind,
            route.namespace,
            route.name,
            route.parents,
            route.hostnames,
            route.rules,
            route.grpc_rules,
            route.created,
        )

    @property
    def ref(self) -> PolicyRef:
        """Return the reference with its group, because both Linkerd and Gateway API have HTTPRoutes."""
        return PolicyRef(self.kind, self.namespace, self.name, self.group)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class HttpRoute(LinkerdResource):
    """Linkerd's own HTTPRoute."""

    route: InboundRoute

    __repr__ = repr_of_named


# References to other objects, as Linkerd compares them: letter case is ignored, and `core` is the empty group.


GroupKind: TypeAlias = tuple[str, str]  # group and kind in their canonical spelling


TARGETS_TODAY: tuple[GroupKind, ...] = (
    (GROUP, "Server"),
    ("", "Namespace"),
    (GROUP, "HTTPRoute"),
    (GATEWAY_GROUP, "HTTPRoute"),
    (GATEWAY_GROUP, "GRPCRoute"),
)
TARGETS: tuple[GroupKind, ...] = (*TARGETS_TODAY, *WORKLOAD_KINDS)  # including the kinds that only the proposal has
IDENTITIES: tuple[GroupKind, ...] = (("", "ServiceAccount"), ("", "Namespace"))
AUTHENTICATIONS: tuple[GroupKind, ...] = (
    (GROUP, "MeshTLSAuthentication"),
    (GROUP, "NetworkAuthentication"),
    ("", "ServiceAccount"),
)
_PROPER = {
    (group.lower(), kind.lower()): (group, kind)
    for group, kind in (*TARGETS, *IDENTITIES, *AUTHENTICATIONS, ("", "Service"), (GROUP, "EgressNetwork"))
}


def canonical_kind(ref: Node) -> GroupKind:
    """Return group and kind of a reference, in their canonical spelling if they are known."""
    group = ref.get("group")
    group_text = group.text if group is not None else ""
    home = "" if group_text.lower() == "core" else group_text
    return _PROPER.get((home.lower(), ref["kind"].text.lower()), (home, ref["kind"].text))


def kind_if_readable(ref: Node) -> GroupKind | None:
    """Return `canonical_kind` of an unchecked reference; None if its group or kind is unreadable."""
    group, kind = ref.get("group"), ref.get("kind")
    texts = [node.value for node in (group, kind) if node is not None]
    return canonical_kind(ref) if kind is not None and all(isinstance(text, str) for text in texts) else None


def namespace_of(document: Node, default: str) -> str | None:
    """Return the namespace of an unchecked document; None if it is invalid."""
    namespace = document["metadata"].get("namespace")
    value = namespace.value if namespace is not None else default
    return value if isinstance(value, str) and dns_label_problem(value) is None else None


def kind_text(kind: GroupKind) -> str:
    """Return the kind for a sentence, as Linkerd writes it."""
    group, name = kind
    return f"{name}.{group}" if group else name or '""'
