"""Derived attributes: a layer that reads one computes it from other attributes."""

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
    """Derives attributes of a request for one layer, such as the claims of a token that the layer accepts.

    Derivations are hashable, and equal ones derive the same. `depends_on` names the input of a derivation other than
    the request, or is None. Attributes of two configurations mean the same if their `depends_on` are equal.
    """

    @property
    def depends_on(self) -> object: ...

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:
        """Return the derived attributes that are known. An attribute that is left out is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class TakenOff:
    """The changes to a request that keep a credential from the application.

    The `removed` headers, the `parameters` of the query (as they are spelled there) and the `cookies` are not sent.
    `headers` replace the headers of the client with the same names.
    """

    removed: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    parameters: tuple[str, ...] = ()
    cookies: tuple[str, ...] = ()


@runtime_checkable
class TokenDeriving(Protocol):
    """A derivation from a token that the application must not get. `issuers` are the issuers of accepted tokens."""

    @property
    def issuers(self) -> tuple[str, ...]: ...

    def take_off(self, values: Mapping[Attribute, Known], raw: RawRequest) -> TakenOff:
        """Return the changes that remove the accepted token from an allowed request."""
        ...


@runtime_checkable
class Doubtful(Protocol):
    """A derivation whose result may be unknown. The question then covers a request with each result."""

    def otherwise(self, values: Mapping[Attribute, Known]) -> tuple[Mapping[Attribute, Known], ProxyReading] | None:
        """Return the other possible result and the reason why it is unknown, or None if the result is known."""
        ...
