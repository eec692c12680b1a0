"""The rules of an AuthorizationPolicy as they are written: values with spans, independent of the proxy.

A rule holds if ANY of its sources, ANY of its operations and ALL of its conditions hold. A source or an operation holds
if ALL of its fields hold. A field holds if ANY of its values matches and NONE of its negated ones. Matching depends on
the proxy, so each proxy's code lowers the values itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.ir import Origin

SOURCE_FIELDS: Final = (
    "principals",
    "requestPrincipals",
    "serviceAccounts",
    "trustDomains",
    "namespaces",
    "remoteIpBlocks",
    "ipBlocks",
)
OPERATION_FIELDS: Final = ("hosts", "methods", "paths", "ports")


def negated(field: str) -> str:
    """Return the name of the field with the values that must not match: `notPaths` for `paths`."""
    return f"not{field[0].upper()}{field[1:]}"


@dataclass(frozen=True, slots=True)
class WrittenValue:
    """A value of a list, with its span."""

    text: str
    span: Span

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a field: ANY of `values`, if there are some, and NONE of `not_values`.

    `span` is the span of the first written list.
    """

    values: tuple[WrittenValue, ...]
    not_values: tuple[WrittenValue, ...]
    span: Span

    def __bool__(self) -> bool:
        return bool(self.values or self.not_values)

    def __iter__(self) -> Iterator[WrittenValue]:
        yield from self.values
        yield from self.not_values


Fields = Mapping[str, Values]
"""The fields of a source or an operation by name, without missing and empty ones."""


@dataclass(frozen=True, slots=True)
class When:
    """An entry of `when`. `span` is that of its key."""

    key: str
    values: Values
    span: Span


@dataclass(frozen=True, slots=True)
class IstioRule:
    """A rule of a policy. `sources` and `operations` are None if they are not written; either list may be empty."""

    origin: Origin
    sources: tuple[Fields, ...] | None = None
    operations: tuple[Fields, ...] | None = None
    conditions: tuple[When, ...] = ()

    @property
    def index(self) -> int:
        """Return its number in the policy, from 0."""
        return self.origin.index

    @property
    def span(self) -> Span | None:
        """Return its text."""
        return self.origin.span
