"""Sources of metadata about a request."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.model.identities import Credentials, SecretRef
from eastgate.dialects.kuadrant.authorino.model.parts import (
    Cache,
    CelExpression,
    Condition,
    Constant,
    Part,
    Property,
    Value,
    look_at_path,
    reach_path,
)
from eastgate.dialects.kuadrant.authorino.paths import selected_mentions


@dataclass(frozen=True, slots=True)
class ClientCredentials(Constant):
    """The credentials for requesting a token (RFC 6749, section 4.4)."""

    token_url: str
    client: str
    secret: SecretRef
    scopes: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    cached: bool = True
    timeout: float | None = None  # in seconds; 0: no limit


@dataclass(frozen=True, slots=True)
class HttpCall(Part):
    """A request to another server. The JSON of its response is the metadata."""

    url: str  # with selectors in braces
    method: str = "GET"
    headers: tuple[Property, ...] = ()
    body: Value | None = None
    body_parameters: tuple[Property, ...] = ()
    content_type: str = "application/x-www-form-urlencoded"
    shared_secret: SecretRef | None = None
    credentials: Credentials = Credentials()
    url_expression: CelExpression | None = None
    """The address, instead of `url`."""
    client: ClientCredentials | None = None
    """The credentials for a token, which is sent instead of the shared secret."""
    timeout: float | None = None  # in seconds; 0: no limit

    @property
    def looks_at_path(self) -> bool:
        return (
            ("{" in self.url and reach_path(selected_mentions(self.url)))
            or look_at_path(*self.headers, self.body, *self.body_parameters)
            or look_at_path(self.shared_secret, self.credentials, self.url_expression, self.client)
        )


@dataclass(frozen=True, slots=True)
class UserInfo(Constant):
    """Claims about the bearer of a token (OpenID Connect), from the issuer of a named identity or from a URL."""

    identity: str = ""
    url: str = ""
    timeout: float | None = None  # in seconds; 0: no limit


@dataclass(frozen=True, slots=True)
class UmaResources(Part):
    """The resources of a server (User-Managed Access) with the path of the request."""

    url: str
    credentials: str  # the name of a Secret with clientID and clientSecret
    timeout: float | None = None  # in seconds; 0: no limit


MetadataSource: TypeAlias = HttpCall | UserInfo | UmaResources


@dataclass(frozen=True, slots=True)
class Metadata(Part):
    """Metadata about the request from another server."""

    name: str
    source: MetadataSource
    priority: int = 0
    when: Condition | None = None
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(self.source, self.when, self.cache)
