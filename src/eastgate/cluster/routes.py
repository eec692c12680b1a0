"""Rules of routes: the requests that match a rule, and their destinations."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from eastgate.basics.records import dataclass
from eastgate.cluster.filters import Redirect, RouteFilter, Unsupported
from eastgate.cluster.patterns import matches_pattern
from eastgate.ir.attributes import METHOD, PATH, Attribute, header, query
from eastgate.ir.matchers import OneOf, Prefix, Value
from eastgate.ir.paths import comparable_path
from eastgate.ir.predicates import ALWAYS, Computed, Is, Or, Predicate, all_of


class PathType(enum.StrEnum):
    """The ways to compare a path, by their names in a manifest."""

    EXACT = "Exact"
    PREFIX = "PathPrefix"
    REGEX = "RegularExpression"


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A path as written. A prefix is one of whole segments: `/foo` matches `/foo` and `/foo/bar`, not `/food`."""

    type: PathType = PathType.PREFIX
    value: str = "/"


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """The value of one header or one query parameter, exactly or as an RE2 expression for the whole value."""

    name: str
    value: str
    regex: bool = False


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """A match of requests: ALL conditions must hold. Each header and each query parameter is named once."""

    path: PathMatch = PathMatch()
    method: str | None = None
    headers: tuple[ValueMatch, ...] = ()
    query: tuple[ValueMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteBackend:
    """A destination for a share of a rule's requests, with Gateway API's defaults filled in.

    `filters` apply to its requests, in order, after those of the rule. An `unsupported` part closes it.
    """

    namespace: str
    name: str
    group: str = ""
    kind: str = "Service"
    port: int | None = None
    weight: int = 1
    filters: tuple[RouteFilter, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in milliseconds for a request, and for each try of it at a backend; 0: no limit; None: not set."""

    request: int | None = None
    backend_request: int | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """The retries of requests: for which statuses, how often, and the least pause in milliseconds."""

    codes: tuple[int, ...] = ()
    attempts: int | None = None
    backoff: int | None = None


@dataclass(frozen=True, slots=True)
class RouteRule:
    """A rule: requests for which ANY of `matches` holds go to one of `backends`, by weight, through `filters`, in
    order.

    An `unsupported` part closes the rule at Eastgate's gateway.
    """

    matches: tuple[RouteMatch, ...] = (RouteMatch(),)
    backends: tuple[RouteBackend, ...] = ()
    filters: tuple[RouteFilter, ...] = ()
    name: str | None = None
    timeouts: Timeouts = Timeouts()
    retry: Retry | None = None
    unsupported: tuple[Unsupported, ...] = ()

    @property
    def redirects(self) -> bool:
        """Return whether the gateway answers these requests itself. Other filters do not change the destination."""
        return any(isinstance(of, Redirect) for of in self.filters)


@dataclass(frozen=True, slots=True)
class GrpcMatch:
    """A match of calls: ALL conditions must hold. Without a service or method, it matches any.

    `regex`: service and method are RE2 expressions, each for the whole name.
    """

    service: str | None = None
    method: str | None = None
    headers: tuple[ValueMatch, ...] = ()
    regex: bool = False


@dataclass(frozen=True, slots=True)
class GrpcRule:
    """A rule of a GRPCRoute: calls for which ANY of `matches` holds go to one of `backends`, as in a `RouteRule`.

    A rule without matches is for all calls.
    """

    matches: tuple[GrpcMatch, ...] = ()
    filters: tuple[RouteFilter, ...] = ()
    backends: tuple[RouteBackend, ...] = ()
    name: str | None = None
    unsupported: tuple[Unsupported, ...] = ()

    redirects: ClassVar[bool] = False
    timeouts: ClassVar[Timeouts] = Timeouts()
    retry: ClassVar[Retry | None] = None


@dataclass(frozen=True, slots=True)
class StreamRule:
    """A rule of a TLSRoute or TCPRoute: connections go to one of `backends`, by weight, unchanged."""

    backends: tuple[RouteBackend, ...] = ()
    name: str | None = None

    filters: ClassVar[tuple[RouteFilter, ...]] = ()
    redirects: ClassVar[bool] = False
    timeouts: ClassVar[Timeouts] = Timeouts()
    retry: ClassVar[Retry | None] = None
    unsupported: ClassVar[tuple[Unsupported, ...]] = ()


# Matches of routes as predicates on requests. The comparison of paths and expressions is a parameter, since data planes
# differ in it. The caller decides in which order it tries matches.


@dataclass(frozen=True, slots=True)
class MatchPredicates:
    """Predicates for matches, which compare paths and expressions as the proxies of a data plane do.

    - `path` is the attribute that is compared with paths.
    - `comparable` turns a path of a manifest into the compared form.
    - `spans` returns whether an expression matches the whole of a text.
    """

    path: Attribute
    comparable: Callable[[str], str]
    spans: Callable[[str, str], bool]

    def requests(self, match: RouteMatch) -> Predicate:
        """Match the requests of a match."""
        return all_of((self.paths(match.path), *self.others(match)))

    # Paths

    def paths(self, match: PathMatch) -> Predicate:
        """Match requests to the paths of a match. The prefix `/` matches every request."""
        whole, part = self.path_parts(match)
        if part is None:
            return whole
        return ALWAYS if part == ALWAYS else Or((whole, part))

    def path_parts(self, match: PathMatch) -> tuple[Predicate, Predicate | None]:
        """Return two predicates: for paths that the match covers completely, and for paths that begin with it."""
        match match.type:
            case PathType.EXACT:
                return self.equal(self.comparable(match.value)), None
            case PathType.REGEX:
                return self.pattern(self.path, match.value), None
            case PathType.PREFIX:
                stem = self.stem(match)
                return self.equal(stem or "/"), self.under(f"{stem}/") if stem else ALWAYS

    def stem(self, prefix: PathMatch) -> str:
        """Return a prefix in its compared form, without the slash at its end."""
        return self.comparable(prefix.value).rstrip("/")

    def equal(self, path: str) -> Predicate:
        """Match requests to this path."""
        return _equal(self.path, path)

    def under(self, prefix: str) -> Predicate:
        """Match requests to paths with this prefix."""
        return Is(self.path, Prefix(prefix))

    # Method, headers and query parameters

    def others(self, match: RouteMatch) -> Iterator[Predicate]:
        """Yield the conditions of a match, except for the path."""
        if match.method is not None:
            yield _equal(METHOD, match.method)
        yield from self.headers(match.headers)
        yield from (self.value(query(value.name), value) for value in match.query)

    def headers(self, matches: tuple[ValueMatch, ...]) -> Iterator[Predicate]:
        """Yield the conditions of matches of headers."""
        return (self.value(header(value.name), value) for value in matches)

    def value(self, attribute: Attribute, match: ValueMatch) -> Predicate:
        """Match requests by the value of a header or query parameter."""
        return self.pattern(attribute, match.value) if match.regex else _equal(attribute, match.value)

    def pattern(self, attribute: Attribute, pattern: str) -> Predicate:
        """Match requests in which an expression covers the value of an attribute."""
        spans = self.spans

        def test(values: Mapping[Attribute, Value | None]) -> bool:
            value = values[attribute]
            return isinstance(value, str) and spans(pattern, value)

        return Computed(f"{attribute} matches {pattern}", frozenset({attribute}), test, pattern=(attribute, pattern))


def _equal(attribute: Attribute, value: str) -> Predicate:
    return Is(attribute, OneOf(frozenset({value})))


CANONICAL: Final = MatchPredicates(PATH, comparable_path, matches_pattern)
