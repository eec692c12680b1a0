"""Destinations of a gateway, and the plan of one of its ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eastgate.basics.records import dataclass
from eastgate.cluster import Cors, PathType, Redirect, RouteFilter, RouteRule, UrlRewrite
from eastgate.cluster.points import Point
from eastgate.cluster.routing import BackendRef, Candidate, Routed
from eastgate.cluster.routing.hostnames import Host, comparable, named_by, specificity
from eastgate.envoy.plan.decisions import Node, ProxyVerdict
from eastgate.envoy.plan.fields import RequestField
from eastgate.envoy.plan.ports import PortPlan
from eastgate.ir import Not, Predicate, all_of, any_of
from eastgate.ir.attributes import Attribute, AttributeKind
from eastgate.ir.paths import comparable_path

# Tests of hosts and of names in TLS handshakes, as Gateway API's hostnames mean them.


def chooses(attribute: Attribute, hostname: Host, among: Iterable[Host]) -> Predicate:
    """Return the test that of these hostnames this is the most specific one that means a host."""
    own = comparable(hostname)
    better = [name for name in map(comparable, among) if specificity(name) > specificity(own)]
    others = any_of([named_by(name, attribute) for name in better])
    return all_of([named_by(own, attribute), *([Not(others)] if better else [])])


DESTINATION = Attribute(AttributeKind.DESTINATION)  # where routing leads a request: the id of a `GatewayDestination`
MESSAGE = Attribute(AttributeKind.MCP_MESSAGE)  # whether the message in a request was read
# Refusals of what is no proper message, or of no session of the caller's, whatever policies say of it
UNREAD_MESSAGE, NO_SESSION, NO_SUCH_SESSION = "unread-message", "no-session", "no-such-session"
NOWHERE = "nowhere"  # the destination of what no route takes
UNCLEAR_ROUTE = "unclear"  # the destination of what cannot be routed for certain


@dataclass(frozen=True, slots=True)
class GatewayDestination:
    """One backend of one rule, or what answers in its place; `points` are those on the way, the Gateway first.

    `backend_key`: the backend of agents that it leads to, if it is one. `prefix`: the part of the path that the rule's
    match names, where a filter replaces it. `reads_messages`: policies on the way look at MCP messages, or deny some to
    a backend of agents, whose clients are then answered with the id of theirs. `filters_tools`: they tell tools apart.
    `shows_body`: the authorizer is shown bodies, and waits for them.
    `asks_schemes`: they have schemes, which may look at certificates.
    """

    id: str
    weight: int
    points: tuple[Point, ...]
    routed: Routed | None = None
    backend: BackendRef | None = None
    backend_key: str | None = None
    prefix: str | None = None
    reads_messages: bool = False
    filters_tools: bool = False
    shows_body: bool = False
    asks_schemes: bool = False

    @property
    def title(self) -> str:
        """Return the route, the rule and the backend, for people."""
        routed, backend = self.routed, self.backend
        if routed is None:
            return "no route"
        rule = f"{routed.route.kind} {routed.route.namespace}/{routed.route.name} rule {routed.rule}"
        return f"{rule} -> {backend.kind} {backend.namespace}/{backend.name}" if backend is not None else rule

    @property
    def speaks_grpc(self) -> bool:
        """Tell whether its servers are spoken to as servers of gRPC are, in HTTP/2."""
        return self.routed is not None and self.routed.route.kind == "GRPCRoute"

    @property
    def filters(self) -> tuple[RouteFilter, ...]:
        """Return what is done to requests on the way, in order."""
        of_rule = self.routed.filters if self.routed is not None else ()
        return (*of_rule, *(self.backend.filters if self.backend is not None else ()))

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Return what a gateway cannot do as it is written, which closes this destination."""
        of_rule = self.routed.unsupported if self.routed is not None else ()
        named = [each.what for each in (*of_rule, *(self.backend.unsupported if self.backend is not None else ()))]
        return (*named, *(each.type for each in self.filters if isinstance(each, Cors)))


@dataclass(frozen=True, slots=True)
class TlsStream:
    """TLS that is passed through: where connections with a name in their handshake go, and whether they may."""

    hostname: Host
    destinations: tuple[GatewayDestination, ...]
    verdict: ProxyVerdict


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class GatewayPlan:
    """All decisions at one port of a gateway.

    `gateway` is its name, as questions have it. `routing` ends in the names of rules, and `rules` has the destinations
    of each; `by_id` has those of all rules. `fields` are what routing looks at.
    """

    gateway: str
    tls: bool
    port: PortPlan
    routing: Node
    rules: Mapping[str, tuple[GatewayDestination, ...]]
    by_id: Mapping[str, GatewayDestination]
    fields: tuple[RequestField, ...]
    streams: tuple[TlsStream, ...] = ()

    @property
    def destinations(self) -> Iterable[GatewayDestination]:
        """Return the destinations of requests."""
        return self.by_id.values()

    @property
    def every_destination(self) -> Iterator[GatewayDestination]:
        """Yield the destinations of requests, and those of TLS that is passed through."""
        yield from self.destinations
        for stream in self.streams:
            yield from stream.destinations

    @property
    def reads_messages(self) -> bool:
        """Return whether MCP messages are to be read at this port."""
        return any(destination.reads_messages for destination in self.destinations)


def replaced_prefix(candidate: Candidate) -> str | None:
    """Return the prefix of paths that a candidate matches, where a filter of its rule replaces it."""
    routed, rule = candidate.routed, candidate.routed.spec
    filters = (*routed.filters, *(each for backend in routed.backends for each in backend.filters))
    changed = (each.path for each in filters if isinstance(each, Redirect | UrlRewrite))
    if not isinstance(rule, RouteRule) or not any(path is not None and path.prefix for path in changed):
        return None
    match = rule.matches[candidate.rank[-1][1]].path
    return comparable_path(match.value).rstrip("/") if match.type is PathType.PREFIX else None
