"""A whole scheme, with its responses and callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.model.identities import (
    AnonymousAccess,
    ApiKeys,
    Identity,
    Jwt,
    Plain,
    SecretRef,
)
from eastgate.dialects.kuadrant.authorino.model.metadata import HttpCall, Metadata
from eastgate.dialects.kuadrant.authorino.model.parts import (
    Cache,
    Condition,
    Constant,
    Part,
    Property,
    Value,
    look_at_path,
    reach_path,
)
from eastgate.dialects.kuadrant.authorino.paths import rego_mentions

# Checks that must allow.


@dataclass(frozen=True, slots=True)
class PatternRules(Part):
    """A condition on the authorization JSON."""

    condition: Condition

    @property
    def looks_at_path(self) -> bool:
        return self.condition.looks_at_path


@dataclass(frozen=True, slots=True)
class FetchedModule(Constant):
    """A Rego module at a URL. It is fetched again after `seconds`; with 0, never."""

    call: HttpCall
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Rego(Part):
    """A Rego module whose `allow` must be true. `all_values`: the values of its other rules are kept too."""

    module: str
    all_values: bool = False
    version: int = 0
    fetched: FetchedModule | None = None
    """The location of the module, instead of `module`."""

    @property
    def looks_at_path(self) -> bool:
        return self.fetched is not None or reach_path(rego_mentions(self.module))


@dataclass(frozen=True, slots=True)
class SubjectAccess(Part):
    """A SubjectAccessReview of a user by the API server.

    Without attributes of a resource, it is about the path of the request.
    """

    user: Value | None
    groups: tuple[str, ...] = ()
    resource: Mapping[str, Value] | None = field(default=None, hash=False)
    selected_groups: Value | None = None
    """A list of groups, instead of `groups`."""

    @property
    def looks_at_path(self) -> bool:
        return self.resource is None or look_at_path(self.user, *self.resource.values(), self.selected_groups)


@dataclass(frozen=True, slots=True)
class PermissionCheck(Part):
    """A permission of a subject on a resource, which a SpiceDB server checks. A missing name is never granted."""

    endpoint: str
    subject: Value | None = None
    subject_kind: Value | None = None
    resource: Value | None = None
    resource_kind: Value | None = None
    permission: Value | None = None
    insecure: bool = False
    shared_secret: SecretRef | None = None

    @property
    def looks_at_path(self) -> bool:
        names = (self.subject, self.subject_kind, self.resource, self.resource_kind, self.permission)
        return look_at_path(*names, self.shared_secret)


AuthorizationRule: TypeAlias = PatternRules | Rego | SubjectAccess | PermissionCheck


@dataclass(frozen=True, slots=True)
class Authorization(Part):
    """A check that must allow."""

    name: str
    rule: AuthorizationRule
    priority: int = 0
    when: Condition | None = None
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(self.rule, self.when, self.cache)


# Headers and metadata for the application, and responses to denied clients.


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
        return look_at_path(*self.properties)


@dataclass(frozen=True, slots=True)
class SigningKey(Constant):
    """The name of a Secret with a private key under `key.pem`, and the signature algorithm."""

    name: str
    algorithm: str


@dataclass(frozen=True, slots=True)
class Wristband(Part):
    """A token about the caller for the application, signed with the first key."""

    issuer: str
    keys: tuple[SigningKey, ...]
    claims: tuple[Property, ...] = ()
    seconds: int = 300

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(*self.claims)


@dataclass(frozen=True, slots=True)
class Response(Part):
    """A header, or metadata of the proxy, for the application."""

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
        return look_at_path(self.content, self.when, self.cache)


@dataclass(frozen=True, slots=True)
class Denial(Part):
    """The response to a denied client, instead of the default one."""

    code: int | None = None
    message: Value | None = None
    headers: tuple[Property, ...] = ()
    body: Value | None = None

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(self.message, *self.headers, self.body)


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
        return False  # a callback decides nothing, whatever it reads


@dataclass(frozen=True, slots=True, eq=False)
class Scheme(Part):
    """One auth scheme. `namespace` is the namespace of its Secrets."""

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
        return look_at_path(
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
        """Return whether the scheme is fast: it asks servers for keys of issuers only, and evaluates nothing slow."""
        return (
            not self.metadata
            and all(isinstance(identity.method, _QUICK_METHODS) for identity in self.identities)
            and all(isinstance(authorization.rule, PatternRules) for authorization in self.authorizations)
            and not any(isinstance(response.content, Wristband) for response in self.responses)
        )


_QUICK_METHODS = (Jwt, ApiKeys, Plain, AnonymousAccess)
