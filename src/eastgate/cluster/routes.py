"""Rules of HTTPRoutes and GRPCRoutes: which requests a rule is for, and where they go."""

from __future__ import annotations

import enum

from eastgate.records import dataclass

__all__ = [
    "GrpcMatch",
    "GrpcRule",
    "PathMatch",
    "PathType",
    "RouteBackend",
    "RouteMatch",
    "RouteRule",
    "ValueMatch",
]


class PathType(enum.StrEnum):
    """The ways of comparing a path, by their names in a manifest."""

    EXACT = "Exact"
    PREFIX = "PathPrefix"
    REGEX = "RegularExpression"


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A path as it is written. A prefix is one of whole segments: `/foo` is for `/foo` and `/foo/bar`, not `/food`."""

    type: PathType = PathType.PREFIX
    value: str = "/"


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """The value of one header or one query parameter, exactly or as an RE2 expression for all of it."""

    name: str
    value: str
    regex: bool = False


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """A request for which ALL of this holds. Each header and each query parameter is named once."""

    path: PathMatch = PathMatch()
    method: str | None = None
    headers: tuple[ValueMatch, ...] = ()
    query: tuple[ValueMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteBackend:
    """A destination for a share of a rule's requests, with Gateway API's defaults filled in."""

    namespace: str
    name: str
    group: str = ""
    kind: str = "Service"
    port: int | None = None
    weight: int = 1


@dataclass(frozen=True, slots=True)
class RouteRule:
    """Requests for which ANY of `matches` holds go to one of `backends`, by weight.

    `filters` are the types of its filters, in order: what they do to a request is not read.
    """

    matches: tuple[RouteMatch, ...] = (RouteMatch(),)
    backends: tuple[RouteBackend, ...] = ()
    filters: tuple[str, ...] = ()

    @property
    def redirects(self) -> bool:
        """Return whether the gateway answers these requests itself. No other filter changes where a request goes."""
        return "RequestRedirect" in self.filters


@dataclass(frozen=True, slots=True)
class GrpcMatch:
    """A call for which ALL of this holds; no service or no method means any.

    `regex`: service and method are RE2 expressions, each for all of the name.
    """

    service: str | None = None
    method: str | None = None
    headers: tuple[ValueMatch, ...] = ()
    regex: bool = False


@dataclass(frozen=True, slots=True)
class GrpcRule:
    """A rule of a GRPCRoute: it is for the calls for which ANY of `matches` holds.

    Without matches it is for all calls. `filters` are the types of its filters, in order.
    """

    matches: tuple[GrpcMatch, ...] = ()
    filters: tuple[str, ...] = ()
