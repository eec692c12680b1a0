"""The order of the routes of a Server, by which requests take them. It is not quite that of Gateway API.

Linkerd's own proxy compares a path as it is sent, ours in its canonical form (`PathPredicates`); the order is the same.

The proxy takes the best match: the longest host (exact before a suffix before none), then the most characters of the
path, then the most headers, then the most query parameters, then a method; what is equal goes to the older route. How
much of a path is matched depends on the request only for a regular expression, which must span all of it: so does an
exact path, and a prefix where it is the whole path. Matches of that kind therefore come first, then the longest prefix
of more, and the order does not depend on the request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import TypeAlias

from eastgate.cluster import GrpcMatch, PathMatch, PathType, RouteMatch, ValueMatch, matches_pattern, spans_first_match
from eastgate.dialects.linkerd.model import InboundRoute, is_server
from eastgate.ir import ALWAYS, And, Computed, Is, OneOf, Or, Predicate, Prefix, Suffix, Value, all_of, conjuncts
from eastgate.ir.attributes import HOST, METHOD, PATH, SENT_PATH, Attribute, header, query
from eastgate.ir.hosts import comparable_host
from eastgate.ir.paths import comparable_path
from eastgate.records import dataclass
from eastgate.settings import DataPlane

__all__ = ["SUPPORTED_FILTERS", "PathPredicates", "RouteCase", "route_cases", "usable_routes"]

Rank: TypeAlias = tuple[int, ...]  # the smallest is the best

_WHOLE_PATH = 1 << 20  # longer than any path
SUPPORTED_FILTERS = frozenset({"RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect"})


@dataclass(frozen=True, slots=True)
class PathPredicates:
    """Predicates about paths, which compare them as the proxies of a data plane do."""

    native: bool

    @classmethod
    def of(cls, data_plane: DataPlane) -> PathPredicates:
        return cls(data_plane is DataPlane.NATIVE)

    @property
    def attribute(self) -> Attribute:
        """Return the attribute of a request that is compared."""
        return SENT_PATH if self.native else PATH

    def comparable(self, path: str) -> str:
        """Return a path of a manifest in the form that is compared."""
        return path if self.native else comparable_path(path)

    def equal(self, path: str) -> Predicate:
        """Match requests to this path."""
        return Is(self.attribute, OneOf(frozenset({path})))

    def under(self, prefix: str) -> Predicate:
        """Match requests to paths with this prefix."""
        return Is(self.attribute, Prefix(prefix))

    def pattern(self, attribute: Attribute, pattern: str) -> Predicate:
        """Match requests in which an expression matches the whole value of an attribute.

        Linkerd's proxy takes the first match that it finds, and requires that one to be the whole value.
        """
        matches = spans_first_match if self.native else matches_pattern

        def test(values: Mapping[Attribute, Value | None]) -> bool:
            value = values[attribute]
            return isinstance(value, str) and matches(pattern, value)

        return Computed(f"{attribute} matches {pattern}", frozenset({attribute}), test, pattern=(attribute, pattern))


@dataclass(frozen=True, slots=True)
class RouteCase:
    """The requests that take a route: those for which `when` holds, and that of no case before it."""

    when: Predicate
    route: InboundRoute


def usable_routes(routes: Iterable[InboundRoute], server: str, kind: str) -> list[InboundRoute]:
    """Return the routes of one kind that are attached to a Server, in Linkerd's order: the oldest first, then by name.

    Those without a time come last. Where a GRPCRoute is attached, an HTTPRoute is not accepted.
    """
    attached = [route for route in routes if _is_attached(route, server)]
    if kind == "HTTPRoute" and any(route.kind == "GRPCRoute" for route in attached):
        return []
    chosen = [route for route in attached if route.kind == kind]
    return sorted(chosen, key=lambda route: (route.created is None, route.created or "", route.name, route.group))


def _is_attached(route: InboundRoute, server: str) -> bool:
    """Return whether Linkerd attaches a route to a Server.

    It drops a route with a parent that it cannot use, or with a filter or a match that it does not support.
    """
    servers = [parent for parent in route.parents if is_server(parent)]
    if any(parent.port or parent.section_name or parent.namespace != route.namespace for parent in servers):
        return False
    filters = {filter_.type for rule in route.rules for filter_ in rule.filters}
    filters |= {filter_.type for rule in route.grpc_rules for filter_ in rule.filters}
    if filters - SUPPORTED_FILTERS or any(match.regex for rule in route.grpc_rules for match in rule.matches):
        return False
    return any(parent.name == server for parent in servers)


def route_cases(routes: Iterable[InboundRoute], paths: PathPredicates) -> list[RouteCase]:
    """Return the cases of these routes, the best match first."""
    ranked: list[tuple[Rank, RouteCase]] = []
    for position, route in enumerate(routes):
        for host_rank, host in _hosts(route.hostnames):
            for rank, match in (_grpc_matches if route.kind == "GRPCRoute" else _http_matches)(route, paths):
                parts = tuple(part for part in (host, match) if part != ALWAYS)
                ranked.append(((*host_rank, *rank, position), RouteCase(And(parts), route)))
    ordered = [case for _, case in sorted(ranked, key=lambda entry: entry[0])]
    return [
        case for case, following in zip_longest(ordered, ordered[1:]) if case and not _is_redundant(case, following)
    ]


def _is_redundant(case: RouteCase, following: RouteCase | None) -> bool:
    """Return whether the next case leads all requests of this one to the same route."""
    if following is None or following.route is not case.route:
        return False
    return set(conjuncts(following.when)) <= set(conjuncts(case.when))


def _hosts(hostnames: tuple[str, ...]) -> Iterator[tuple[Rank, Predicate]]:
    for hostname in hostnames:
        if hostname.startswith("*."):
            suffix = comparable_host(hostname[1:])
            yield (1, -len(suffix)), Is(HOST, Suffix(suffix))
        else:
            host = comparable_host(hostname)
            yield (0, -len(host)), Is(HOST, OneOf(frozenset({host})))
    if not hostnames:
        yield (2, 0), ALWAYS


# HTTP: path, headers, query, method


def _http_matches(route: InboundRoute, paths: PathPredicates) -> Iterator[tuple[Rank, Predicate]]:
    for rule in route.rules:
        for match in rule.matches:
            for length, path in _path_predicates(match.path, paths):
                rank = (-length, -len(match.headers), -len(match.query), -(match.method is not None))
                yield rank, all_of((path, *_other_predicates(match, paths)))


def _path_predicates(path: PathMatch, paths: PathPredicates) -> Iterator[tuple[int, Predicate]]:
    """Yield predicates for the parts of a path match, each with the number of characters that it matches."""
    match path.type:
        case PathType.EXACT:
            yield _WHOLE_PATH, paths.equal(paths.comparable(path.value))
        case PathType.REGEX:
            yield _WHOLE_PATH, paths.pattern(paths.attribute, path.value)
        case PathType.PREFIX:
            prefix = paths.comparable(path.value).rstrip("/")
            yield _WHOLE_PATH, paths.equal(prefix or "/")
            yield len(prefix) or 1, paths.under(f"{prefix}/") if prefix else ALWAYS


def _other_predicates(match: RouteMatch, paths: PathPredicates) -> Iterator[Predicate]:
    if match.method is not None:
        yield Is(METHOD, OneOf(frozenset({match.method})))
    yield from (_value(header(value_match.name), value_match, paths) for value_match in match.headers)
    yield from (_value(query(value_match.name), value_match, paths) for value_match in match.query)


# gRPC: service, method, headers


def _grpc_matches(route: InboundRoute, paths: PathPredicates) -> Iterator[tuple[Rank, Predicate]]:
    for rule in route.grpc_rules:
        for match in rule.matches:
            rank = (-len(match.service or ""), -len(match.method or ""), -len(match.headers))
            headers = (_value(header(value_match.name), value_match, paths) for value_match in match.headers)
            yield rank, all_of((Is(METHOD, OneOf(frozenset({"POST"}))), _rpc(match, paths), *headers))
        if not rule.matches:
            yield (0, 0, 0), ALWAYS


def _rpc(match: GrpcMatch, paths: PathPredicates) -> Predicate:
    """Match a gRPC service and method.

    The proxy looks at the first two segments of the path, and requires both to be present.
    """
    match match.service, match.method:
        case str(service), str(method):
            path = f"/{service}/{method}"
            return Or((paths.equal(path), paths.under(f"{path}/")))
        case str(service), None:
            return paths.under(f"/{service}/")
        case None, str(method):
            pattern = f"(?s)[^/]*/[^/]*/{re.escape(method)}(/.*)?"
            return _grpc_method(f"the gRPC method is {method}", method, pattern, paths)
        case _:
            return _grpc_method("it names a gRPC method", None, "(?s)[^/]*/[^/]*/.*", paths)


def _grpc_method(text: str, wanted: str | None, pattern: str, paths: PathPredicates) -> Computed:
    attribute = paths.attribute

    def test(values: Mapping[Attribute, Value | None]) -> bool:
        segments = str(values[attribute] or "").split("/")
        return len(segments) > 2 and (wanted is None or segments[2] == wanted)

    return Computed(text, frozenset({attribute}), test, pattern=(attribute, pattern))


# Values


def _value(attribute: Attribute, match: ValueMatch, paths: PathPredicates) -> Predicate:
    return paths.pattern(attribute, match.value) if match.regex else Is(attribute, OneOf(frozenset({match.value})))
