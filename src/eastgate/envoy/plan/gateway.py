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

# Tests of hosts and of names in TLS handshakes, by Gateway API's hostnames.


def chooses(attribute: Attribute, hostname: Host, among: Iterable[Host]) -> Predicate:
    """Return a test for hosts whose most specific hostname, among all of these, is this one."""
    own = comparable(hostname)
    better = [name for name in map(comparable, among) if specificity(name) > specificity(own)]
    others = any_of([named_by(name, attribute) for name in better])
    return all_of([named_by(own, attribute), *([Not(others)] if better else [])])


DESTINATION = Attribute(AttributeKind.DESTINATION)  # the chosen destination: the id of a `GatewayDestination`
MESSAGE = Attribute(AttributeKind.MCP_MESSAGE)  # whether the message in a request was read
# Refusals of invalid messages, and of sessions that are not the caller's, whatever policies allow
UNREAD_MESSAGE, NO_SESSION, NO_SUCH_SESSION = "unread-message", "no-session", "no-such-session"
NOWHERE = "nowhere"  # the destination of requests without a route
UNCLEAR_ROUTE = "unclear"  # the destination of requests with an unclear route


@dataclass(frozen=True, slots=True)
class GatewayDestination:
    """One backend of one rule, or its replacement; `points` are those on the way, the Gateway first.

    - `backend_key`: the backend of agents, if it is one.
    - `prefix`: the part of the path that the rule's match names, if a filter replaces it.
    - `reads_messages`: policies on the way look at MCP messages, or may deny messages to a backend of agents, whose
      clients need an answer with their id.
    - `filters_tools`: policies on the way distinguish tools.
    - `shows_body`: the authorizer gets bodies, and waits for them.
    - `asks_schemes`: policies on the way have authentication schemes, which may look at certificates.
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
        """Return whether its servers are servers of gRPC, in HTTP/2."""
        return self.routed is not None and self.routed.route.kind == "GRPCRoute"

    @property
    def filters(self) -> tuple[RouteFilter, ...]:
        """Return the filters of requests on the way, in order."""
        of_rule = self.routed.filters if self.routed is not None else ()
        return (*of_rule, *(self.backend.filters if self.backend is not None else ()))

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Return the parts that a gateway cannot do as written, which close this destination."""
        of_rule = self.routed.unsupported if self.routed is not None else ()
        named = [each.what for each in (*of_rule, *(self.backend.unsupported if self.backend is not None else ()))]
        return (*named, *(each.type for each in self.filters if isinstance(each, Cors)))


@dataclass(frozen=True, slots=True)
class TlsStream:
    """Passed-through TLS: the destinations of connections with a server name, and the verdict about them."""

    hostname: Host
    destinations: tuple[GatewayDestination, ...]
    verdict: ProxyVerdict


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class GatewayPlan:
    """All decisions at one port of a gateway.

    `gateway` is its name in questions. `routing` ends in the names of rules, and `rules` has the destinations of each;
    `by_id` has those of all rules. `fields` are the fields in the routing.
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
        """Yield the destinations of requests, and those of passed-through TLS."""
        yield from self.destinations
        for stream in self.streams:
            yield from stream.destinations

    @property
    def reads_messages(self) -> bool:
        """Return whether a destination of this port needs MCP messages."""
        return any(destination.reads_messages for destination in self.destinations)


def replaced_prefix(candidate: Candidate) -> str | None:
    """Return the prefix of paths that a candidate matches, if a filter of its rule replaces it."""
    routed, rule = candidate.routed, candidate.routed.spec
    filters = (*routed.filters, *(each for backend in routed.backends for each in backend.filters))
    changed = (each.path for each in filters if isinstance(each, Redirect | UrlRewrite))
    if not isinstance(rule, RouteRule) or not any(path is not None and path.prefix for path in changed):
        return None
    match = rule.matches[candidate.rank[-1][1]].path
    return comparable_path(match.value).rstrip("/") if match.type is PathType.PREFIX else None
