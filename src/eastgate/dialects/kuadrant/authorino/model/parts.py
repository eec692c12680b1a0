"""Parts of a scheme, and whether they read the path of a request."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import field
from typing import TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.paths import (
    PATH_OF_REQUEST,
    Path,
    cel_mentions,
    lead,
    selected_mentions,
    touched,
)


class Part:
    """A part of a scheme. A part without information about the path counts as one that reads it."""

    __slots__ = ()

    @property
    def looks_at_path(self) -> bool:
        """Return whether an expression in the part may read the path of the request."""
        return True


class Constant(Part):
    """A part without expressions."""

    __slots__ = ()

    @property
    def looks_at_path(self) -> bool:
        return False


def reach_path(mentions: Iterable[Path]) -> bool:
    return touched(mentions, PATH_OF_REQUEST) is not None


def look_at_path(*parts: Part | None) -> bool:
    return any(part.looks_at_path for part in parts if part is not None)


# Values: literal, or from the authorization JSON.


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
        return reach_path(selected_mentions(self.path))


@dataclass(frozen=True, slots=True)
class CelExpression(Part):
    """A CEL expression."""

    text: str

    @property
    def looks_at_path(self) -> bool:
        return reach_path(cel_mentions(self.text))


Value: TypeAlias = LiteralValue | Selected | CelExpression


@dataclass(frozen=True, slots=True)
class Property(Part):
    """A named value that is added to an object. `overwrite`: it replaces a value with the same name."""

    name: str
    value: Value
    overwrite: bool = False

    @property
    def looks_at_path(self) -> bool:
        return self.value.looks_at_path


@dataclass(frozen=True, slots=True)
class Cache(Part):
    """The time for which an answer may be cached for requests with the same key."""

    key: Value
    seconds: int = 60

    @property
    def looks_at_path(self) -> bool:
        return self.key.looks_at_path


# Conditions on the authorization JSON.


class PatternOperator(enum.StrEnum):
    """The comparison of a pattern."""

    EQ = "eq"
    NEQ = "neq"
    INCL = "incl"
    EXCL = "excl"
    MATCHES = "matches"


@dataclass(frozen=True, slots=True)
class Pattern(Part):
    """A selected value and a comparison."""

    selector: str
    operator: PatternOperator
    value: str
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return reach_path((lead(self.selector),))


@dataclass(frozen=True, slots=True)
class CelPredicate(Part):
    """A CEL expression that must be true. `at_gateway`: it reads the attributes of the gateway's filter."""

    text: str
    span: Span | None = field(default=None, compare=False)
    at_gateway: bool = False

    @property
    def looks_at_path(self) -> bool:
        return reach_path(cel_mentions(self.text, at_gateway=self.at_gateway))


@dataclass(frozen=True, slots=True)
class MissingPatterns(Constant):
    """A reference to a named set of patterns that does not exist. It errs."""

    name: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class All(Part):
    """A condition that holds if ALL parts hold. Without parts, it holds."""

    parts: tuple[Condition, ...] = ()

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(*self.parts)


@dataclass(frozen=True, slots=True)
class AnyOf(Part):
    """A condition that holds if ANY part holds.

    Without parts, it does not. `apart`: the named sets whose patterns each became a part.
    """

    parts: tuple[Condition, ...] = ()
    apart: tuple[Span, ...] = field(default=(), compare=False)

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(*self.parts)


Condition: TypeAlias = Pattern | CelPredicate | MissingPatterns | All | AnyOf
