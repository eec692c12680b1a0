"""What a rule of an HTTPRoute says: which requests it is for, and where they go."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["PathMatch", "PathType", "RouteBackend", "RouteMatch", "RouteRule", "ValueMatch"]


class PathType(enum.StrEnum):
    """How a path is compared, as it is written."""

    EXACT = "Exact"
    PREFIX = "PathPrefix"
    REGEX = "RegularExpression"


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A path. A prefix is one of whole segments: `/foo` is for `/foo` and `/foo/bar`, not for `/foobar`."""

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
    """Where a share of a rule's requests goes, with Gateway API's defaults filled in."""

    namespace: str
    name: str
    group: str = ""
    kind: str = "Service"
    port: int | None = None
    weight: int = 1


@dataclass(frozen=True, slots=True)
class RouteRule:
    """Requests for which ANY of `matches` holds go to one of `backends`, by weight.

    `redirects`: the gateway answers them itself. Other filters do not change where a request goes, and are not read.
    """

    matches: tuple[RouteMatch, ...] = (RouteMatch(),)
    backends: tuple[RouteBackend, ...] = ()
    redirects: bool = False
