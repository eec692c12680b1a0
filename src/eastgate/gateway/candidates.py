"""Every match of every rule as a candidate, with its place in the order of Gateway API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from eastgate.cluster import GATEWAY_GROUP, PathMatch, PathType, Route, RouteMatch, RouteRule, World
from eastgate.cluster.route_predicates import CANONICAL
from eastgate.gateway.hostnames import Host, specificity
from eastgate.gateway.model import BackendRef, Routed
from eastgate.ir import Predicate
from eastgate.records import dataclass

__all__ = ["Candidate", "Rank", "candidates_of"]

Rank: TypeAlias = tuple[
    tuple[int, int],  # the hostname
    tuple[int, int],  # the path
    tuple[bool, int, int],  # the method, headers, query parameters
    tuple[bool, str, str],  # the age, and the name, of the route
    tuple[int, int],  # the rule and the match
]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One match of a rule, under one hostname of its route.

    It is chosen for requests that meet its predicate, and that of no candidate with a smaller rank.
    """

    rank: Rank
    hostname: Host
    when: Predicate
    routed: Routed


def candidates_of(world: World, route: Route, hostname: Host) -> Iterator[Candidate]:
    """Return the candidates of a route for the hosts that one of its hostnames means."""
    for number, rule in enumerate(route.rules):
        routed = Routed(route, number, _backends(world, route, rule), rule.redirects)
        for position, match in enumerate(rule.matches):
            rank = _rank(route, hostname, match, (number, position))
            yield Candidate(rank, hostname, CANONICAL.requests(match), routed)


def _backends(world: World, route: Route, rule: RouteRule) -> tuple[BackendRef, ...]:
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
        )
        for ref in rule.backends
        if ref.weight > 0
    )


def _rank(route: Route, hostname: Host, match: RouteMatch, position: tuple[int, int]) -> Rank:
    """Return the rank; the smallest is first. A route that the API server has not seen yet is the youngest."""
    kind, length = specificity(hostname)
    return (
        (-kind, -length),
        _path_rank(match.path),
        (match.method is None, -len(match.headers), -len(match.query)),
        (route.created is None, route.created or "", f"{route.namespace}/{route.name}"),
        position,
    )


def _path_rank(path: PathMatch) -> tuple[int, int]:
    """Exact before prefix before expression, and long before short; how long an expression is means nothing."""
    match path.type:
        case PathType.EXACT:
            return 0, -len(CANONICAL.comparable(path.value))
        case PathType.PREFIX:
            return 1, -len(CANONICAL.stem(path))
        case PathType.REGEX:
            return 2, 0
