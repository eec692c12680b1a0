"""Every match of every rule as a candidate, with its rank in the order of Gateway API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.cluster import (
    GATEWAY_GROUP,
    GrpcMatch,
    GrpcRule,
    PathMatch,
    PathType,
    Route,
    RouteMatch,
    RouteRule,
    StreamRule,
    World,
)
from eastgate.cluster.routes import CANONICAL
from eastgate.cluster.routing.attachment import seniority
from eastgate.cluster.routing.hostnames import Host, specificity
from eastgate.cluster.routing.model import BackendRef, Routed, call_predicate, rules_of
from eastgate.cluster.targets import GatewayNamed
from eastgate.ir import ALWAYS, Predicate

Rank: TypeAlias = tuple[
    tuple[int, int],  # the hostname
    "_MatchRank",
    tuple[bool, str, str, int],  # the age, the name and the kind of the route
    tuple[int, int],  # the rule and the match
]
_MatchRank: TypeAlias = tuple[
    tuple[int, int],  # the path, or the service and the method of gRPC
    tuple[bool, int, int],  # the method, headers, query parameters
]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One match of a rule, under one hostname of its route.

    The gateway chooses it for requests that meet its predicate, and no predicate of a candidate with a smaller rank.
    """

    rank: Rank
    hostname: Host
    when: Predicate
    routed: Routed


def candidates_of(
    world: World, gateway: GatewayNamed, listener: str, route: Route, hostname: Host
) -> Iterator[Candidate]:
    """Return the candidates of a route behind a listener, for the hosts of one of its hostnames."""
    for number, rule in enumerate(rules_of(route)):
        routed = Routed(route, number, _backends(world, route, rule), rule.redirects, gateway, listener)
        for position, (match_rank, when) in enumerate(_matches(rule)):
            kind, length = specificity(hostname)
            rank: Rank = ((-kind, -length), match_rank, seniority(route), (number, position))
            yield Candidate(rank, hostname, when, routed)


def _backends(world: World, route: Route, rule: RouteRule | GrpcRule | StreamRule) -> tuple[BackendRef, ...]:
    origin = GATEWAY_GROUP, route.kind, route.namespace
    return tuple(
        BackendRef(
            group=ref.group,
            kind=ref.kind,
            namespace=ref.namespace,
            name=ref.name,
            port=ref.port,
            weight=ref.weight,
            granted=world.granted(*origin, ref.group, ref.kind, ref.namespace, ref.name),
            filters=ref.filters,
            unsupported=ref.unsupported,
        )
        for ref in rule.backends
        if ref.weight > 0
    )


def matches_of(rule: RouteRule | GrpcRule | StreamRule) -> Iterator[Predicate]:
    """Yield the matches of a rule, each as a predicate on requests."""
    return (when for _, when in _matches(rule))


def _matches(rule: RouteRule | GrpcRule | StreamRule) -> Iterator[tuple[_MatchRank, Predicate]]:
    """Yield the matches of a rule, each as its rank and as a predicate on requests; the smallest rank is first."""
    match rule:
        case RouteRule():
            for match in rule.matches:
                yield _http_rank(match), CANONICAL.requests(match)
        case GrpcRule():
            for call in rule.matches or (GrpcMatch(),):
                yield _call_rank(call), call_predicate(call)
        case StreamRule():
            yield ((0, 0), (False, 0, 0)), ALWAYS


def _http_rank(match: RouteMatch) -> _MatchRank:
    return _path_rank(match.path), (match.method is None, -len(match.headers), -len(match.query))


def _path_rank(path: PathMatch) -> tuple[int, int]:
    """Exact before prefix before expression, and long before short. The length of an expression does not count."""
    match path.type:
        case PathType.EXACT:
            return 0, -len(CANONICAL.comparable(path.value))
        case PathType.PREFIX:
            return 1, -len(CANONICAL.stem(path))
        case PathType.REGEX:
            return 2, 0


def _call_rank(match: GrpcMatch) -> _MatchRank:
    """Long services before short ones, then long methods. The length of an expression does not count."""

    def rank(name: str | None) -> int:
        return 0 if name is None else -1 if match.regex else -1 - len(name)

    return (rank(match.service), rank(match.method)), (False, -len(match.headers), 0)
