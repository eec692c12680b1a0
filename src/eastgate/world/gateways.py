"""The nouns of Gateway API: gateways, routes, and the grants that let references cross namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eastgate.places import Span
from eastgate.world.objects import ObjectId

__all__ = [
    "GATEWAY_GROUP",
    "ROUTE_KINDS",
    "Gateway",
    "GrantFrom",
    "GrantTo",
    "Listener",
    "ParentRef",
    "ReferenceGrant",
    "Route",
]

GATEWAY_GROUP = "gateway.networking.k8s.io"
ROUTE_KINDS = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute")


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of a Gateway; no hostname means any."""

    name: str
    port: int
    protocol: str
    hostname: str | None = None


@dataclass(frozen=True, slots=True)
class Gateway:
    """A Gateway."""

    namespace: str
    name: str
    listeners: tuple[Listener, ...] = ()
    gateway_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """Its name among the world's gateways: `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def id(self) -> ObjectId:
        """Which object of the API this is."""
        return ObjectId(GATEWAY_GROUP, "Gateway", self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class ParentRef:
    """What a route asks to be attached to, with Gateway API's defaults filled in."""

    namespace: str
    name: str
    group: str = GATEWAY_GROUP
    kind: str = "Gateway"
    section_name: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """A route of one of `ROUTE_KINDS`. Its rules stay as they were written, for whoever understands them."""

    kind: str
    namespace: str
    name: str
    hostnames: tuple[str, ...] = ()
    parents: tuple[ParentRef, ...] = ()
    rules: tuple[Mapping[str, object], ...] = field(default=(), hash=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """Its name among the world's routes: `Kind/namespace/name`."""
        return f"{self.kind}/{self.namespace}/{self.name}"

    @property
    def id(self) -> ObjectId:
        """Which object of the API this is."""
        return ObjectId(GATEWAY_GROUP, self.kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class GrantFrom:
    """Who may refer into the grant's namespace."""

    group: str
    kind: str
    namespace: str


@dataclass(frozen=True, slots=True)
class GrantTo:
    """What may be referred to in the grant's namespace; no name means all of that kind."""

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
        """Which object of the API this is."""
        return ObjectId(GATEWAY_GROUP, "ReferenceGrant", self.namespace, self.name)

    def allows(self, origin: GrantFrom, group: str, kind: str, name: str) -> bool:
        """Whether this grant lets `origin` refer to that object of the grant's namespace."""
        return origin in self.origins and (
            GrantTo(group, kind) in self.destinations or GrantTo(group, kind, name) in self.destinations
        )
