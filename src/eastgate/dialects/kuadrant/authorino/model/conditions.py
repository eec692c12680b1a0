"""Conditions on the authorization JSON."""

from __future__ import annotations

import enum
from dataclasses import field
from typing import TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.model.parts import Constant, Part, look_at_path, reach_path
from eastgate.dialects.kuadrant.authorino.paths import cel_mentions, lead


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
        return reach_path((lead(self.selector),))


@dataclass(frozen=True, slots=True)
class CelPredicate(Part):
    """A CEL expression that must be true. `at_gateway`: on the attributes that the filter of a gateway has."""

    text: str
    span: Span | None = field(default=None, compare=False)
    at_gateway: bool = False

    @property
    def looks_at_path(self) -> bool:
        return reach_path(cel_mentions(self.text, at_gateway=self.at_gateway))


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
        return look_at_path(*self.parts)


@dataclass(frozen=True, slots=True)
class AnyOf(Part):
    """ANY part holds; without parts, it does not. `apart` are named sets of which each pattern is a part of its own."""

    parts: tuple[Condition, ...] = ()
    apart: tuple[Span, ...] = field(default=(), compare=False)

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(*self.parts)


Condition: TypeAlias = Pattern | CelPredicate | MissingPatterns | All | AnyOf
