"""The order in which requests take the routes of a Server. It differs slightly from that of Gateway API.

Linkerd's own proxy compares a path as the client sent it. Eastgate's proxy compares its canonical form
(`match_predicates`). The order of the routes is the same.

The proxy takes the best match. It compares, in this order: the host (exact before a suffix before none, the longest
first), the number of matched path characters, the number of headers, the number of query parameters, and whether there
is a method. Between equal matches, the older route wins.

The number of matched path characters depends on the request only if a match spans the whole path: a regular expression
and an exact path always do, and a prefix may. So these matches come first, then the prefixes of longer paths, the
longest first. That order does not depend on the request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import TypeAlias

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.records import dataclass
from eastgate.cluster import GrpcMatch, Manifest, ParentRef, PathMatch, Route, WorldObject, spans_first_match
from eastgate.cluster.examination import Examination
from eastgate.cluster.fields import Data, mapping, text
from eastgate.cluster.routes import CANONICAL, MatchPredicates
from eastgate.cluster.shapes import TEXT, each, record
from eastgate.dialects.linkerd import codes
from eastgate.dialects.linkerd.model import GROUP, INBOUND_KINDS, InboundRoute, is_server
from eastgate.dialects.linkerd.route_shapes import is_header_name
from eastgate.ir import ALWAYS, And, Computed, Is, OneOf, Or, Predicate, Suffix, Value, all_of, conjuncts
from eastgate.ir.addresses import comparable_host
from eastgate.ir.attributes import HOST, METHOD, SENT_PATH, Attribute
from eastgate.reading.manifests.shapes import Field, enumerated, quoted
from eastgate.reading.manifests.shapes.constraints import Demand, Problem
from eastgate.settings import DataPlane

Rank: TypeAlias = tuple[int, ...]  # the smallest key is the best match

_WHOLE_PATH = 1 << 20  # longer than any path
# Linkerd's proxy searches for the first match of an expression, which must be the whole value.
_NATIVE = MatchPredicates(SENT_PATH, comparable=str, spans=spans_first_match)
SUPPORTED_FILTERS = frozenset({"RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect"})


def match_predicates(data_plane: DataPlane) -> MatchPredicates:
    """Return the predicates for route matches at the proxies of a data plane."""
    return _NATIVE if data_plane is DataPlane.NATIVE else CANONICAL


@dataclass(frozen=True, slots=True)
class RouteCase:
    """The requests that take a route: `when` matches, and no `when` of an earlier case does."""

    when: Predicate
    route: InboundRoute


def usable_routes(routes: Iterable[InboundRoute], server: str, kind: str) -> list[InboundRoute]:
    """Return the routes of one kind that are attached to a Server, in Linkerd's order: by age, the oldest first, then
    by name.

    Routes without a creation time are last. If a GRPCRoute is attached, HTTPRoutes are not accepted.
    """
    attached = [route for route in routes if _is_attached(route, server)]
    if kind == "HTTPRoute" and any(route.kind == "GRPCRoute" for route in attached):
        return []
    chosen = [route for route in attached if route.kind == kind]
    return sorted(chosen, key=lambda route: (route.created is None, route.created or "", route.name, route.group))


def _is_attached(route: InboundRoute, server: str) -> bool:
    """Return whether Linkerd attaches a route to a Server.

    Linkerd drops a route with an unusable parent, or with an unsupported filter or match.
    """
    servers = [parent for parent in route.parents if is_server(parent)]
    if any(parent.port or parent.section_name or parent.namespace != route.namespace for parent in servers):
        return False
    filters = {filter_.type for rule in route.rules for filter_ in rule.filters}
    filters |= {filter_.type for rule in route.grpc_rules for filter_ in rule.filters}
    if filters - SUPPORTED_FILTERS or any(match.regex for rule in route.grpc_rules for match in rule.matches):
        return False
    return any(parent.name == server for parent in servers)


def route_cases(routes: Iterable[InboundRoute], predicates: MatchPredicates) -> list[RouteCase]:
    """Return the cases of these routes, the best match first."""
    ranked: list[tuple[Rank, RouteCase]] = []
    for position, route in enumerate(routes):
        for host_rank, host in _hosts(route.hostnames):
            for rank, match in (_grpc_matches if route.kind == "GRPCRoute" else _http_matches)(route, predicates):
                parts = tuple(part for part in (host, match) if part != ALWAYS)
                ranked.append(((*host_rank, *rank, position), RouteCase(And(parts), route)))
    ordered = [case for _, case in sorted(ranked, key=lambda entry: entry[0])]
    return [
        case for case, following in zip_longest(ordered, ordered[1:]) if case and not _is_redundant(case, following)
    ]


def _is_redundant(case: RouteCase, following: RouteCase | None) -> bool:
    """Return whether the next case leads all requests of this case to the same route."""
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


def _http_matches(route: InboundRoute, predicates: MatchPredicates) -> Iterator[tuple[Rank, Predicate]]:
    for rule in route.rules:
        for match in rule.matches:
            others = tuple(predicates.others(match))
            for length, path in _paths(match.path, predicates):
                rank = (-length, -len(match.headers), -len(match.query), -(match.method is not None))
                yield rank, all_of((path, *others))


def _paths(path: PathMatch, predicates: MatchPredicates) -> Iterator[tuple[int, Predicate]]:
    """Yield predicates for the parts of a path match, each with the number of matched characters."""
    whole, part = predicates.path_parts(path)
    yield _WHOLE_PATH, whole
    if part is not None:
        yield len(predicates.stem(path)) or 1, part


# gRPC: service, method, headers


def _grpc_matches(route: InboundRoute, predicates: MatchPredicates) -> Iterator[tuple[Rank, Predicate]]:
    for rule in route.grpc_rules:
        for match in rule.matches:
            rank = (-len(match.service or ""), -len(match.method or ""), -len(match.headers))
            headers = predicates.headers(match.headers)
            yield rank, all_of((Is(METHOD, OneOf(frozenset({"POST"}))), _rpc(match, predicates), *headers))
        if not rule.matches:
            yield (0, 0, 0), ALWAYS


def _rpc(match: GrpcMatch, predicates: MatchPredicates) -> Predicate:
    """Match a gRPC service and method.

    The proxy reads the first two segments of the path, and requires both.
    """
    match match.service, match.method:
        case str(service), str(method):
            path = f"/{service}/{method}"
            return Or((predicates.equal(path), predicates.under(f"{path}/")))
        case str(service), None:
            return predicates.under(f"/{service}/")
        case None, str(method):
            pattern = f"(?s)[^/]*/[^/]*/{re.escape(method)}(/.*)?"
            return _grpc_method(f"the gRPC method is {method}", method, pattern, predicates)
        case _:
            return _grpc_method("it names a gRPC method", None, "(?s)[^/]*/[^/]*/.*", predicates)


def _grpc_method(text: str, wanted: str | None, pattern: str, predicates: MatchPredicates) -> Computed:
    attribute = predicates.path

    def test(values: Mapping[Attribute, Value | None]) -> bool:
        segments = str(values[attribute] or "").split("/")
        return len(segments) > 2 and (wanted is None or segments[2] == wanted)

    return Computed(text, frozenset({attribute}), test, pattern=(attribute, pattern))


# Checks routes of Gateway API with a parent of Linkerd's group. These routes are not resources of this dialect.
#
# The checks read the route alone, so that the result does not depend on whether its Server was read.


def inspect(manifest: Manifest, declared: WorldObject, reporter: Reporter) -> None:
    """Report the fields of a route that Linkerd's webhook rejects, or accepts and then ignores."""
    if not isinstance(declared, Route) or declared.kind not in INBOUND_KINDS:
        return
    if not any(parent.group.lower() == GROUP for parent in declared.parents):
        return
    Examination(manifest, reporter).examine(_ROUTE, manifest.data)
    if any(is_server(parent) for parent in declared.parents):
        _report_dropped(declared, reporter)


# Checks of the webhook


def _parent_problems(parent: Data) -> Iterator[Problem]:
    group, kind = text(parent, "group") or "", text(parent, "kind") or ""
    if (group.lower(), kind.lower()) == (GROUP, "egressnetwork") and parent.get("port") is None:
        message = "cannot target an EgressNetwork without specifying a port"
        yield Problem(codes.ROUTE_PARENT, message, "write port: <number>", ("kind",))


def _match_problems(match: Data) -> Iterator[Problem]:
    if mapping(match, "method").get("type") == "RegularExpression":
        message = "unsupported GRPCRoute method match type: RegularExpression"
        yield Problem(codes.MATCH_TYPE, message, "write type: Exact, which is also the default", ("method", "type"))


def _backend_problems(backend: Data) -> Iterator[Problem]:
    # Gateway API itself reports this if no group is written.
    if backend.get("group") == "core" and text(backend, "kind") in (None, "Service") and backend.get("port") is None:
        message = "invalid backendRef: cannot reference a Service without a port"
        yield Problem(codes.ROUTE_BACKEND, message, "write port: <number>")


def _header_problems(header: Data) -> Iterator[Problem]:
    name = text(header, "name") or ""
    if not is_header_name(name):
        message = f"{quoted(name)} is not the name of a header"
        yield Problem(codes.ROUTE_HEADER, message, "write a name such as x-team", ("name",))


def _redirect_problems(redirect: Data) -> Iterator[Problem]:
    path = mapping(redirect, "path")
    for field in ("replaceFullPath", "replacePrefixMatch"):  # Gateway API itself requires one of them
        value = text(path, field)
        if value is not None and not value.startswith("/"):
            requirement = "RequestRedirect filters may only contain absolute paths (starting with '/')"
            message = f"{requirement}; {quoted(value)} is not an absolute path"
            yield Problem(codes.ROUTE_REDIRECT, message, f"write /{value}", ("path", field))


_HEADERS = each({"name": Field(TEXT, required=True)}, Demand(_header_problems))
_RULE = each(
    {
        "matches": each({"headers": _HEADERS}, Demand(_match_problems)),
        "filters": each({"requestRedirect": record({"path": record({})}, Demand(_redirect_problems))}),
        "backendRefs": each({}, Demand(_backend_problems)),
    }
)
_ROUTE = record({"spec": record({"parentRefs": each({}, Demand(_parent_problems)), "rules": _RULE})})


# Routes that Linkerd accepts and then ignores


def _report_dropped(route: Route, reporter: Reporter) -> None:
    for reason, way_out in _reasons(route):
        message = f"Linkerd ignores {route.kind} {route.namespace}/{route.name}: {reason}"
        reporter.report(codes.DROPPED_ROUTE, message, route.span, help=way_out)


def _reasons(route: Route) -> Iterator[tuple[str, str]]:
    filters = {filter_.type for rule in route.rules for filter_ in rule.filters}
    filters |= {filter_.type for rule in route.grpc_rules for filter_ in rule.filters}
    if unsupported := sorted(filters - SUPPORTED_FILTERS):
        yield f"it has {enumerated(unsupported, 'and')}", "remove the filter from a route of a Server"
    for parent in route.parents:
        problem = _why_unusable(route, parent) if is_server(parent) else None
        if problem is not None:
            yield f"its Server parent {problem}", "write its name, and nothing else"


def _why_unusable(route: Route, parent: ParentRef) -> str | None:
    if parent.namespace != route.namespace:
        return "is in another namespace"
    if parent.port is not None:
        return "has `port`"
    return "has `sectionName`" if parent.section_name is not None else None
