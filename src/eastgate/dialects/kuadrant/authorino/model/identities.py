"""Ways to recognize a caller."""

from __future__ import annotations

import enum
from dataclasses import field
from typing import TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Selector
from eastgate.dialects.kuadrant.authorino.model.parts import (
    Cache,
    CelExpression,
    Condition,
    Constant,
    Part,
    Property,
    Selected,
    look_at_path,
)


class Where(enum.StrEnum):
    """The part of a request that carries a credential."""

    AUTHORIZATION_HEADER = "authorization_header"
    CUSTOM_HEADER = "custom_header"
    QUERY = "query"
    COOKIE = "cookie"


@dataclass(frozen=True, slots=True)
class Credentials(Constant):
    """The location of a credential, and its name; in the Authorization header `key` is the prefix before it."""

    where: Where = Where.AUTHORIZATION_HEADER
    key: str = "Bearer"


@dataclass(frozen=True, slots=True)
class SecretRef(Constant):
    """One value in a Secret of the policy's namespace."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Jwt(Constant):
    """A token that the issuer signed. `issuer` is where its keys are discovered; or they are at `jwks_url`."""

    issuer: str | None
    jwks_url: str | None = None
    audiences: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ApiKeys(Constant):
    """A key that one of these Secrets holds under `api_key`, of the scheme's namespace or of all."""

    secrets: Selector
    all_namespaces: bool = False


class CertificateFormat(enum.Enum):
    """The way in which a header carries a certificate."""

    XFCC = enum.auto()
    RFC_9440 = enum.auto()


@dataclass(frozen=True, slots=True)
class CertificateHeader(Constant):
    """A header with the client certificate: as Envoy writes it (XFCC), or as RFC 9440 does."""

    name: str
    format: CertificateFormat


@dataclass(frozen=True, slots=True)
class X509(Part):
    """A client certificate that one of these Secrets' authorities signed. Without a source, that of the connection."""

    secrets: Selector
    all_namespaces: bool = False
    source: CertificateHeader | CelExpression | None = None

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(self.source)


@dataclass(frozen=True, slots=True)
class TokenReview(Constant):
    """A Kubernetes token; the API server says whose. Without audiences it is the host of the request."""

    audiences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Introspection(Constant):
    """A token that its issuer is asked about (RFC 7662)."""

    url: str
    token_type_hint: str = ""
    credentials: str = ""  # the name of a Secret with clientID and clientSecret
    timeout: float | None = None  # in seconds; 0: no limit


@dataclass(frozen=True, slots=True)
class Plain(Part):
    """A selected value, or that of an expression. It must exist."""

    selector: str = ""
    expression: str = ""

    @property
    def value(self) -> Selected | CelExpression:
        """Return the value that is the identity."""
        return CelExpression(self.expression) if self.expression else Selected(self.selector)

    @property
    def looks_at_path(self) -> bool:
        return self.value.looks_at_path


@dataclass(frozen=True, slots=True)
class AnonymousAccess(Constant):
    """No credential: everybody is recognized."""


Method: TypeAlias = Jwt | ApiKeys | X509 | TokenReview | Introspection | Plain | AnonymousAccess

METHOD_NAMES: dict[type[Method], str] = {
    Jwt: "Jwt",
    ApiKeys: "ApiKeys",
    X509: "X509",
    TokenReview: "TokenReview",
    Introspection: "Introspection",
    Plain: "Plain",
    AnonymousAccess: "Anonymous",
}
"""What descriptions call the ways to identify a caller."""


@dataclass(frozen=True, slots=True)
class Identity(Part):
    """One way to recognize a caller."""

    name: str
    method: Method
    credentials: Credentials = Credentials()
    priority: int = 0
    when: Condition | None = None
    properties: tuple[Property, ...] = ()
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(self.method, self.credentials, self.when, *self.properties, self.cache)
