"""Methods to recognize a caller."""

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
    """The part of a request with a credential."""

    AUTHORIZATION_HEADER = "authorization_header"
    CUSTOM_HEADER = "custom_header"
    QUERY = "query"
    COOKIE = "cookie"


@dataclass(frozen=True, slots=True)
class Credentials(Constant):
    """The location of a credential, and its name.

    In the Authorization header `key` is the prefix before the credential.
    """

    where: Where = Where.AUTHORIZATION_HEADER
    key: str = "Bearer"


@dataclass(frozen=True, slots=True)
class SecretRef(Constant):
    """One value in a Secret of the policy's namespace."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Jwt(Constant):
    """A signed token. Its keys are discovered from `issuer`, or are at `jwks_url`."""

    issuer: str | None
    jwks_url: str | None = None
    audiences: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ApiKeys(Constant):
    """An API key: one of these Secrets has it under `api_key`. The Secrets are in the scheme's namespace, or in all."""

    secrets: Selector
    all_namespaces: bool = False


class CertificateFormat(enum.Enum):
    """The format of a certificate in a header."""

    XFCC = enum.auto()
    RFC_9440 = enum.auto()


@dataclass(frozen=True, slots=True)
class CertificateHeader(Constant):
    """A header with the client certificate: in Envoy's format (XFCC), or in the format of RFC 9440."""

    name: str
    format: CertificateFormat


@dataclass(frozen=True, slots=True)
class X509(Part):
    """A client certificate that a CA in one of these Secrets signed. Without a source, it is that of the connection."""

    secrets: Selector
    all_namespaces: bool = False
    source: CertificateHeader | CelExpression | None = None

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(self.source)


@dataclass(frozen=True, slots=True)
class TokenReview(Constant):
    """A Kubernetes token, which the API server verifies. Without audiences, the audience is the host of the request."""

    audiences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Introspection(Constant):
    """An opaque token, whose issuer is asked about it (RFC 7662)."""

    url: str
    token_type_hint: str = ""
    credentials: str = ""  # the name of a Secret with clientID and clientSecret
    timeout: float | None = None  # in seconds; 0: no limit


@dataclass(frozen=True, slots=True)
class Plain(Part):
    """A selected value, or the value of an expression. The value must exist."""

    selector: str = ""
    expression: str = ""

    @property
    def value(self) -> Selected | CelExpression:
        """Return the value that becomes the identity."""
        return CelExpression(self.expression) if self.expression else Selected(self.selector)

    @property
    def looks_at_path(self) -> bool:
        return self.value.looks_at_path


@dataclass(frozen=True, slots=True)
class AnonymousAccess(Constant):
    """No credential: every caller is recognized."""


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
"""The names of identity methods in descriptions."""


@dataclass(frozen=True, slots=True)
class Identity(Part):
    """One method to recognize a caller."""

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
