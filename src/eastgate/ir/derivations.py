"""Attributes that are worked out of others, where a layer looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol, runtime_checkable

from eastgate.basics.records import dataclass
from eastgate.ir.attributes import Attribute
from eastgate.ir.authorizers import RawRequest
from eastgate.ir.matchers import Known
from eastgate.ir.placement import ProxyReading


class Derivation(Protocol):
    """Works out attributes of a request as one layer sees it: the claims of a token that it accepts, for example.

    It is hashable, and two that are equal derive the same. `depends_on` is what its attributes depend on beside the
    request, None where that is nothing: those of two readings mean the same where that is alike.
    """

    @property
    def depends_on(self) -> object: ...

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:
        """Return what is known of the derived attributes; one that is left out is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class TakenOff:
    """The changes to a request that keep a credential from the application.

    `removed` headers, `parameters` of the query, named as they are spelled there, and `cookies` are not sent. `headers`
    are sent instead of what the client sent under their names.
    """

    removed: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    parameters: tuple[str, ...] = ()
    cookies: tuple[str, ...] = ()


@runtime_checkable
class TokenDeriving(Protocol):
    """A derivation from a token that the application must not get. `issuers` are those whose tokens it accepts."""

    @property
    def issuers(self) -> tuple[str, ...]: ...

    def take_off(self, values: Mapping[Attribute, Known], raw: RawRequest) -> TakenOff:
        """Return the changes that remove the accepted token from an allowed request."""
        ...


@runtime_checkable
class Doubtful(Protocol):
    """A derivation of which it may be unknown what it derives. The question then stands for a request of each kind."""

    def otherwise(self, values: Mapping[Attribute, Known]) -> tuple[Mapping[Attribute, Known], ProxyReading] | None:
        """Return what else may be so, and why that is unknown; None where it is known."""
        ...
