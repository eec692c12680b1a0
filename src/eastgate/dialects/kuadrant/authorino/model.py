"""An auth scheme: what Authorino calls an AuthConfig, whichever of its versions it was written in.

    identity       ANY one must recognize the caller; those of a lower priority number are asked first
    metadata       more about the request, fetched from elsewhere
    authorization  ALL must agree
    response       what the service behind is told about the caller

Everything that a scheme compares is in the authorization JSON: the request, and what the steps before have found out.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from eastgate.cluster import Selector
from eastgate.diagnostics.spans import Span
from eastgate.records import dataclass

__all__ = [
    "X509",
    "All",
    "Anonymous",
    "AnyOf",
    "ApiKeys",
    "Authorization",
    "Cache",
    "CelExpression",
    "CelPredicate",
    "Condition",
    "Credentials",
    "Denial",
    "HttpCall",
    "Identity",
    "Introspection",
    "Json",
    "Jwt",
    "Literal",
    "Metadata",
    "Operator",
    "Pattern",
    "PatternRules",
    "Plain",
    "PlainResponse",
    "Property",
    "Rego",
    "Response",
    "Scheme",
    "SecretRef",
    "Selected",
    "SubjectAccess",
    "TokenReview",
    "Value",
    "Where",
]


# Values: written out, or selected from the authorization JSON


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as it is written: any JSON."""

    value: object = field(hash=False)


@dataclass(frozen=True, slots=True)
class Selected:
    """A GJSON selector, or a text with selectors in braces."""

    path: str


@dataclass(frozen=True, slots=True)
class CelExpression:
    """A CEL expression."""

    text: str


Value: TypeAlias = Literal | Selected | CelExpression


# Conditions


class Operator(enum.StrEnum):
    """The comparison of a pattern."""

    EQ = "eq"
    NEQ = "neq"
    INCL = "incl"
    EXCL = "excl"
    MATCHES = "matches"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A selected value, compared with a value."""

    selector: str
    operator: Operator
    value: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CelPredicate:
    """A CEL expression that must be true."""

    text: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class All:
    """ALL parts hold; without parts, it holds."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """ANY part holds; without parts, it does not. `apart` are named sets of which each pattern is a part of its own."""

    parts: tuple[Condition, ...] = ()
    apart: tuple[Span, ...] = field(default=(), compare=False)


Condition: TypeAlias = Pattern | CelPredicate | All | AnyOf


# Identity


class Where(enum.StrEnum):
    """The part of a request that carries a credential."""

    AUTHORIZATION_HEADER = "authorization_header"
    CUSTOM_HEADER = "custom_header"
    QUERY = "query"
    COOKIE = "cookie"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The location of a credential, and its name; in the Authorization header `key` is the prefix before it."""

    where: Where = Where.AUTHORIZATION_HEADER
    key: str = "Bearer"


@dataclass(frozen=True, slots=True)
class SecretRef:
    """One value in a Secret of the policy's namespace."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Jwt:
    """A token that the issuer signed. `issuer` is where its keys are discovered; or they are at `jwks_url`."""

    issuer: str | None
    jwks_url: str | None = None
    audiences: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """A key that one of these Secrets holds under `api_key`."""

    secrets: Selector


@dataclass(frozen=True, slots=True)
class X509:
    """A client certificate that one of these Secrets' authorities signed."""

    secrets: Selector


@dataclass(frozen=True, slots=True)
class TokenReview:
    """A Kubernetes token; the API server says whose. Without audiences it is the host of the request."""

    audiences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Introspection:
    """A token that its issuer is asked about (RFC 7662)."""

    url: str
    token_type_hint: str = ""
    credentials: str = ""  # the name of a Secret with clientID and clientSecret


@dataclass(frozen=True, slots=True)
class Plain:
    """Whatever is selected, as long as it is there."""

    selector: str


@dataclass(frozen=True, slots=True)
class Anonymous:
    """Everybody."""


Method: TypeAlias = Jwt | ApiKeys | X509 | TokenReview | Introspection | Plain | Anonymous


@dataclass(frozen=True, slots=True)
class Property:
    """A property that is added to what is known; `overwrite`: also where it is there already."""

    name: str
    value: Value
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Cache:
    """The time for which an answer may be used again for a request with the same key."""

    key: Value
    seconds: int = 60


@dataclass(frozen=True, slots=True)
class Identity:
    """One way to recognize a caller."""

    name: str
    method: Method
    credentials: Credentials = Credentials()
    priority: int = 0
    when: Condition | None = None
    properties: tuple[Property, ...] = ()
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)


# Metadata


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request to elsewhere, whose JSON answer is kept."""

    url: str  # with selectors in braces
    method: str = "GET"
    headers: tuple[Property, ...] = ()
    body: Value | None = None
    body_parameters: tuple[Property, ...] = ()
    content_type: str = "application/x-www-form-urlencoded"
    shared_secret: SecretRef | None = None
    credentials: Credentials = Credentials()


@dataclass(frozen=True, slots=True)
class Metadata:
    """More about the request."""

    name: str
    source: HttpCall
    priority: int = 0
    when: Condition | None = None
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)


# Authorization


@dataclass(frozen=True, slots=True)
class PatternRules:
    """A condition on the authorization JSON."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Rego:
    """A Rego module whose `allow` must be true. `all_values`: its other rules are kept as well."""

    module: str
    all_values: bool = False
    version: int = 0


@dataclass(frozen=True, slots=True)
class SubjectAccess:
    """A question to the API server: what this user may do. Without attributes of a resource, on the path of the
    request.
    """

    user: Value | None
    groups: tuple[str, ...] = ()
    resource: Mapping[str, Value] | None = field(default=None, hash=False)


AuthorizationRule: TypeAlias = PatternRules | Rego | SubjectAccess


@dataclass(frozen=True, slots=True)
class Authorization:
    """One thing that must be so."""

    name: str
    rule: AuthorizationRule
    priority: int = 0
    when: Condition | None = None
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)


# Response


@dataclass(frozen=True, slots=True)
class PlainResponse:
    """One value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Json:
    """An object."""

    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class Response:
    """A header, or metadata of the proxy, for the service behind."""

    name: str
    content: PlainResponse | Json
    key: str
    in_header: bool = True
    priority: int = 0
    when: Condition | None = None
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Denial:
    """The response to a denied client, instead of the usual."""

    code: int | None = None
    message: Value | None = None
    headers: tuple[Property, ...] = ()
    body: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """One auth scheme. `namespace` is where its Secrets are."""

    namespace: str
    hosts: tuple[str, ...]
    identities: tuple[Identity, ...] = ()
    metadata: tuple[Metadata, ...] = ()
    authorizations: tuple[Authorization, ...] = ()
    responses: tuple[Response, ...] = ()
    when: Condition | None = None
    unauthenticated: Denial = Denial()
    unauthorized: Denial = Denial()
    span: Span | None = None
