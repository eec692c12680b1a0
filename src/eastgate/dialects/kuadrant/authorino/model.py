"""An auth scheme: an AuthConfig of Authorino, in any of its versions.

    identity       ANY one must recognize the caller; those of a lower priority number are asked first
    metadata       more about the request, fetched from elsewhere
    authorization  ALL must agree
    response       headers and metadata about the caller, for the service behind
    callbacks      requests to other servers once it is decided

Everything that a scheme compares is in the authorization JSON: the request, and the findings of the steps before.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TypeAlias

from eastgate.cluster import Selector
from eastgate.diagnostics.spans import Span
from eastgate.dialects.kuadrant.authorino.paths import (
    PATH_OF_REQUEST,
    Path,
    cel_mentions,
    lead,
    rego_mentions,
    selected_mentions,
    touched,
)
from eastgate.records import dataclass

__all__ = [
    "METHOD_NAMES",
    "X509",
    "All",
    "AnonymousAccess",
    "AnyOf",
    "ApiKeys",
    "Authorization",
    "Cache",
    "Callback",
    "CelExpression",
    "CelPredicate",
    "CertificateFormat",
    "CertificateHeader",
    "ClientCredentials",
    "Condition",
    "Credentials",
    "Denial",
    "FetchedModule",
    "HttpCall",
    "Identity",
    "Introspection",
    "Json",
    "Jwt",
    "LiteralValue",
    "Metadata",
    "MetadataSource",
    "MissingPatterns",
    "Part",
    "Pattern",
    "PatternOperator",
    "PatternRules",
    "PermissionCheck",
    "Plain",
    "PlainResponse",
    "Property",
    "Rego",
    "Response",
    "Scheme",
    "SecretRef",
    "Selected",
    "SigningKey",
    "SubjectAccess",
    "TokenReview",
    "UmaResources",
    "UserInfo",
    "Value",
    "Where",
    "Wristband",
]


class Part:
    """A part of a scheme. One that does not say whether it looks at the path counts as one that does."""

    __slots__ = ()

    @property
    def looks_at_path(self) -> bool:
        """Return whether an expression in it may look at the path of the request."""
        return True


class Constant(Part):
    """A part without expressions."""

    __slots__ = ()

    @property
    def looks_at_path(self) -> bool:
        return False


def _reach_path(mentions: Iterable[Path]) -> bool:
    return touched(mentions, PATH_OF_REQUEST) is not None


def _look_at_path(*parts: Part | None) -> bool:
    return any(part.looks_at_path for part in parts if part is not None)


# Values: literal, or selected from the authorization JSON


@dataclass(frozen=True, slots=True)
class LiteralValue(Constant):
    """A literal value: any JSON."""

    value: object = field(hash=False)


@dataclass(frozen=True, slots=True)
class Selected(Part):
    """A GJSON selector, or a text with selectors in braces."""

    path: str

    @property
    def looks_at_path(self) -> bool:
        return _reach_path(selected_mentions(self.path))


@dataclass(frozen=True, slots=True)
class CelExpression(Part):
    """A CEL expression."""

    text: str

    @property
    def looks_at_path(self) -> bool:
        return _reach_path(cel_mentions(self.text))


Value: TypeAlias = LiteralValue | Selected | CelExpression


# Conditions


class PatternOperator(enum.StrEnum):
    """The comparison of a pattern."""

    EQ = "eq"
    NEQ = "neq"
    INCL = "incl"
    EXCL = "excl"
    MATCHES = "matches"


@dataclass(frozen=True, slots=True)
class Pattern(Part):
    """A selected value, compared with a value."""

    selector: str
    operator: PatternOperator
    value: str
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return _reach_path((lead(self.selector),))


@dataclass(frozen=True, slots=True)
class CelPredicate(Part):
    """A CEL expression that must be true. `at_gateway`: on the attributes that the filter of a gateway has."""

    text: str
    span: Span | None = field(default=None, compare=False)
    at_gateway: bool = False

    @property
    def looks_at_path(self) -> bool:
        return _reach_path(cel_mentions(self.text, at_gateway=self.at_gateway))


@dataclass(frozen=True, slots=True)
class MissingPatterns(Constant):
    """A reference to a named set of patterns that no policy has. It errs."""

    name: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class All(Part):
    """ALL parts hold; without parts, it holds."""

    parts: tuple[Condition, ...] = ()

    @property
    def looks_at_path(self) -> bool:
        return _look_at_path(*self.parts)


@dataclass(frozen=True, slots=True)
class AnyOf(Part):
    """ANY part holds; without parts, it does not. `apart` are named sets of which each pattern is a part of its own."""

    parts: tuple[Condition, ...] = ()
    apart: tuple[Span, ...] = field(default=(), compare=False)

    @property
    def looks_at_path(self) -> bool:
        return _look_at_path(*self.parts)


Condition: TypeAlias = Pattern | CelPredicate | MissingPatterns | All | AnyOf


# Identity


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
        return _look_at_path(self.source)


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
class Property(Part):
    """A named value that is added to an object; `overwrite`: also where the object has the name already."""

    name: str
    value: Value
    overwrite: bool = False

    @property
    def looks_at_path(self) -> bool:
        return self.value.looks_at_path


@dataclass(frozen=True, slots=True)
class Cache(Part):
    """The time for which an answer may be used again for a request with the same key."""

    key: Value
    seconds: int = 60

    @property
    def looks_at_path(self) -> bool:
        return self.key.looks_at_path


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
        return _look_at_path(self.method, self.credentials, self.when, *self.properties, self.cache)


# Metadata


@dataclass(frozen=True, slots=True)
class ClientCredentials(Constant):
    """The credentials with which a token is asked for (RFC 6749, section 4.4)."""

    token_url: str
    client: str
    secret: SecretRef
    scopes: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    cached: bool = True


@dataclass(frozen=True, slots=True)
class HttpCall(Part):
    """A request to another server, whose JSON answer is kept."""

    url: str  # with selectors in braces
    method: str = "GET"
    headers: tuple[Property, ...] = ()
    body: Value | None = None
    body_parameters: tuple[Property, ...] = ()
    content_type: str = "application/x-www-form-urlencoded"
    shared_secret: SecretRef | None = None
    credentials: Credentials = Credentials()
    url_expression: CelExpression | None = None
    """The address, in place of `url`."""
    client: ClientCredentials | None = None
    """The credentials for a token that is sent in place of the shared secret."""

    @property
    def looks_at_path(self) -> bool:
        return (
            ("{" in self.url and _reach_path(selected_mentions(self.url)))
            or _look_at_path(*self.headers, self.body, *self.body_parameters)
            or _look_at_path(self.shared_secret, self.credentials, self.url_expression, self.client)
        )


@dataclass(frozen=True, slots=True)
class UserInfo(Constant):
    """Claims about the bearer of a token (OpenID Connect): from its issuer, by the name of an identity, or a URL."""

    identity: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class UmaResources(Part):
    """The resources of a server (User-Managed Access) that have the path of the request."""

    url: str
    credentials: str  # the name of a Secret with clientID and clientSecret


MetadataSource: TypeAlias = HttpCall | UserInfo | UmaResources


@dataclass(frozen=True, slots=True)
class Metadata(Part):
    """More about the request, from another server."""

    name: str
    source: MetadataSource
    priority: int = 0
    when: Condition | None = None
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return _look_at_path(self.source, self.when, self.cache)


# Authorization


@dataclass(frozen=True, slots=True)
class PatternRules(Part):
    """A condition on the authorization JSON."""

    condition: Condition

    @property
    def looks_at_path(self) -> bool:
        return self.condition.looks_at_path


@dataclass(frozen=True, slots=True)
class FetchedModule(Constant):
    """A Rego module at a URL, which is fetched again after so many seconds; after 0, not again."""

    call: HttpCall
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Rego(Part):
    """A Rego module whose `allow` must be true. `all_values`: its other rules are kept as well."""

    module: str
    all_values: bool = False
    version: int = 0
    fetched: FetchedModule | None = None
    """The location of the module, in place of `module`."""

    @property
    def looks_at_path(self) -> bool:
        return self.fetched is not None or _reach_path(rego_mentions(self.module))


@dataclass(frozen=True, slots=True)
class SubjectAccess(Part):
    """A SubjectAccessReview of a user by the API server. Without attributes of a resource, on the path of the
    request.
    """

    user: Value | None
    groups: tuple[str, ...] = ()
    resource: Mapping[str, Value] | None = field(default=None, hash=False)
    selected_groups: Value | None = None
    """A list of groups, in place of `groups`."""

    @property
    def looks_at_path(self) -> bool:
        return self.resource is None or _look_at_path(self.user, *self.resource.values(), self.selected_groups)


@dataclass(frozen=True, slots=True)
class PermissionCheck(Part):
    """A permission of a subject on a resource, which a SpiceDB server knows."""

    endpoint: str
    subject: Value
    subject_kind: Value
    resource: Value
    resource_kind: Value
    permission: Value
    insecure: bool = False
    shared_secret: SecretRef | None = None

    @property
    def looks_at_path(self) -> bool:
        names = (self.subject, self.subject_kind, self.resource, self.resource_kind, self.permission)
        return _look_at_path(*names, self.shared_secret)


AuthorizationRule: TypeAlias = PatternRules | Rego | SubjectAccess | PermissionCheck


@dataclass(frozen=True, slots=True)
class Authorization(Part):
    """A check that must agree."""

    name: str
    rule: AuthorizationRule
    priority: int = 0
    when: Condition | None = None
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return _look_at_path(self.rule, self.when, self.cache)


# Response


@dataclass(frozen=True, slots=True)
class PlainResponse(Part):
    """A single value."""

    value: Value

    @property
    def looks_at_path(self) -> bool:
        return self.value.looks_at_path


@dataclass(frozen=True, slots=True)
class Json(Part):
    """An object of named values."""

    properties: tuple[Property, ...]

    @property
    def looks_at_path(self) -> bool:
        return _look_at_path(*self.properties)


@dataclass(frozen=True, slots=True)
class SigningKey(Constant):
    """The name of a Secret with a private key under `key.pem`, and the algorithm to sign with."""

    name: str
    algorithm: str


@dataclass(frozen=True, slots=True)
class Wristband(Part):
    """A token about the caller that is issued for the service behind, signed with the first key."""

    issuer: str
    keys: tuple[SigningKey, ...]
    claims: tuple[Property, ...] = ()
    seconds: int = 300

    @property
    def looks_at_path(self) -> bool:
        return _look_at_path(*self.claims)


@dataclass(frozen=True, slots=True)
class Response(Part):
    """A header, or metadata of the proxy, for the service behind."""

    name: str
    content: PlainResponse | Json | Wristband
    key: str
    in_header: bool = True
    priority: int = 0
    when: Condition | None = None
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return _look_at_path(self.content, self.when, self.cache)


@dataclass(frozen=True, slots=True)
class Denial(Part):
    """The response to a denied client, instead of the usual."""

    code: int | None = None
    message: Value | None = None
    headers: tuple[Property, ...] = ()
    body: Value | None = None

    @property
    def looks_at_path(self) -> bool:
        return _look_at_path(self.message, *self.headers, self.body)


# Callbacks


@dataclass(frozen=True, slots=True)
class Callback(Part):
    """A request that is sent after every decision. Its response changes nothing."""

    name: str
    call: HttpCall
    priority: int = 0
    when: Condition | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return False  # whatever it looks at, it decides nothing


@dataclass(frozen=True, slots=True, eq=False)
class Scheme(Part):
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
    callbacks: tuple[Callback, ...] = ()

    @property
    def looks_at_path(self) -> bool:
        return _look_at_path(
            *self.identities,
            *self.metadata,
            *self.authorizations,
            *self.responses,
            self.when,
            self.unauthenticated,
            self.unauthorized,
        )

    @property
    def is_quick(self) -> bool:
        """Return whether it asks no server but for keys of issuers, and computes nothing that could take long."""
        return (
            not self.metadata
            and all(isinstance(identity.method, _QUICK_METHODS) for identity in self.identities)
            and all(isinstance(authorization.rule, PatternRules) for authorization in self.authorizations)
            and not any(isinstance(response.content, Wristband) for response in self.responses)
        )


_QUICK_METHODS = (Jwt, ApiKeys, Plain, AnonymousAccess)
