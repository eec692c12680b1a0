"""Headers and metadata for the service behind, and responses to denied clients."""

from __future__ import annotations

from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.model.conditions import Condition
from eastgate.dialects.kuadrant.authorino.model.parts import Constant, Part, look_at_path
from eastgate.dialects.kuadrant.authorino.model.values import Cache, Property, Value


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
        return look_at_path(*self.claims)


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
        return look_at_path(self.content, self.when, self.cache)


@dataclass(frozen=True, slots=True)
class Denial(Part):
    """The response to a denied client, instead of the usual."""

    code: int | None = None
    message: Value | None = None
    headers: tuple[Property, ...] = ()
    body: Value | None = None

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(self.message, *self.headers, self.body)
