"""Filters of Gateway API's routes: changes of a request or its response by a gateway."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from eastgate.basics.records import dataclass

Header: TypeAlias = tuple[str, str]
"""The name of a header, as it is written, and its value."""


@dataclass(frozen=True, slots=True)
class HeaderModifier:
    """Changes headers of requests or, by its `type`, of responses.

    `set` replaces values, `add` adds another value, `remove` removes all. Each name occurs once, in any letter case.
    """

    type: str
    set: tuple[Header, ...] = ()
    add: tuple[Header, ...] = ()
    remove: tuple[str, ...] = ()

    REQUEST: ClassVar[str] = "RequestHeaderModifier"
    RESPONSE: ClassVar[str] = "ResponseHeaderModifier"


@dataclass(frozen=True, slots=True)
class PathModifier:
    """A new path: for the whole path or, with `prefix`, for the part of it that the match of the rule names."""

    value: str
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Redirect:
    """Answers with a redirect. None means the value of the request. Gateway API defines the port that follows."""

    scheme: str | None = None
    hostname: str | None = None
    path: PathModifier | None = None
    port: int | None = None
    status: int = 302

    type: ClassVar[str] = "RequestRedirect"


@dataclass(frozen=True, slots=True)
class UrlRewrite:
    """Changes the host or the path of the request that is forwarded."""

    hostname: str | None = None
    path: PathModifier | None = None

    type: ClassVar[str] = "URLRewrite"


@dataclass(frozen=True, slots=True)
class Cors:
    """Answers preflight requests of browsers, and tells which other origins may read an answer."""

    allow_origins: tuple[str, ...] = ()
    allow_credentials: bool = False
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    expose_headers: tuple[str, ...] = ()
    max_age: int = 5

    type: ClassVar[str] = "CORS"


@dataclass(frozen=True, slots=True)
class UnsupportedFilter:
    """A filter that Eastgate's gateway does not have. It must not be skipped: requests for it get status 500."""

    type: str


RouteFilter: TypeAlias = HeaderModifier | Redirect | UrlRewrite | Cors | UnsupportedFilter


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A part of a rule that Eastgate's gateway cannot do as written, which closes that rule or backend.

    `may_refuse`: a gateway that supports it may refuse requests, so that their verdict is unknown.
    """

    what: str
    may_refuse: bool = False
