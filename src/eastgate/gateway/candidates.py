"""Every match of every rule as a candidate, with its place in the order of Gateway API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from eastgate.cluster import (
    GATEWAY_GROUP,
    PathMatch,
    PathType,
    Route,
    RouteMatch,
    RouteRule,
    ValueMatch,
    World,
    matches_pattern,
)
from eastgate.gateway.hostnames import Host, specificity
from eastgate.gateway.model import BackendRef, Routed
from eastgate.ir import Computed, Is, OneOf, Or, Predicate, Prefix, Value, all_of
from eastgate.ir.attributes import METHOD, PATH, Attribute, header, query
from eastgate.records import dataclass

__all__ = ["Candidate", "Rank", "candidates_of"]

Rank: TypeAlias = tuple[
    tuple[int, int],  # the hostname
    tuple[int, int],  # the path
    tuple[bool, int, int],  # the method, headers, query parameters
    tuple[bool, str, str],  # the age, and the name, of the route
    tuple[int, int],  # the rule and the match
]

_PATH_ORDER = {PathType.EXACT: 2, PathType.PREFIX: 1, PathType.REGEX: 0}


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
            yield Candidate(rank, hostname, _requests(match), routed)


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
    lengths = {PathType.EXACT: len(path.comparable), PathType.PREFIX: len(_prefix(path)), PathType.REGEX: 0}
    return -_PATH_ORDER[path.type], -lengths[path.type]


def _prefix(path: PathMatch) -> str:
    return path.comparable.rstrip("/")


def _requests(match: RouteMatch) -> Predicate:
    """Return which requests a match means."""
    return all_of(
        (
            *([_equal(METHOD, match.method)] if match.method is not None else []),
            *_paths(match.path),
            *(_value(header(value.name), value) for value in match.headers),
            *(_value(query(value.name), value) for value in match.query),
        )
    )


def _paths(path: PathMatch) -> Iterator[Predicate]:
    match path.type:
        case PathType.EXACT:
            yield _equal(PATH, path.comparable)
        case PathType.REGEX:
            yield _pattern(PATH, path.value)
        case PathType.PREFIX:
            if prefix := _prefix(path):  # the prefix / is for every request, whatever its path
                yield Or((_equal(PATH, prefix), Is(PATH, Prefix(f"{prefix}/"))))


def _value(attribute: Attribute, match: ValueMatch) -> Predicate:
    return _pattern(attribute, match.value) if match.regex else _equal(attribute, match.value)


def _equal(attribute: Attribute, value: str) -> Is:
    return Is(attribute, OneOf(frozenset({value})))


def _pattern(attribute: Attribute, pattern: str) -> Computed:
    def test(values: Mapping[Attribute, Value | None]) -> bool:
        value = values[attribute]
        return isinstance(value, str) and matches_pattern(pattern, value)

    return Computed(f"{attribute} matches {pattern}", frozenset({attribute}), test, pattern=(attribute, pattern))
