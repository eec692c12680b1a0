"""Rules of routes: which requests a rule is for, and where they go."""

from __future__ import annotations

import enum
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.cluster.filters import Redirect, RouteFilter, Unsupported


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
    """A destination for a share of a rule's requests, with Gateway API's defaults filled in.

    `filters` are applied, in order, to what goes here, after those of the rule. What is `unsupported` closes it.
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
    """How long a request, and each try of it at a backend, may take, in milliseconds; 0: for ever; None: not said."""

    request: int | None = None
    backend_request: int | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """When requests are tried again: for which statuses, how often, and after how many milliseconds at least."""

    codes: tuple[int, ...] = ()
    attempts: int | None = None
    backoff: int | None = None


@dataclass(frozen=True, slots=True)
class RouteRule:
    """Requests for which ANY of `matches` holds go to one of `backends`, by weight, through `filters`, in order.

    What is `unsupported` closes the rule at Eastgate's gateway.
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
        """Tell whether the gateway answers these requests itself. Other filters do not change where a request goes."""
        return any(isinstance(of, Redirect) for of in self.filters)


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
    """A rule of a GRPCRoute: calls for which ANY of `matches` holds go to one of `backends`, as in a `RouteRule`.

    Without matches it is for all calls.
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
    """A rule of a TLSRoute or TCPRoute: connections go to one of `backends`, by weight, as they are."""

    backends: tuple[RouteBackend, ...] = ()
    name: str | None = None

    filters: ClassVar[tuple[RouteFilter, ...]] = ()
    redirects: ClassVar[bool] = False
    timeouts: ClassVar[Timeouts] = Timeouts()
    retry: ClassVar[Retry | None] = None
    unsupported: ClassVar[tuple[Unsupported, ...]] = ()
