"""Values: literal, or from the authorization JSON."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.model.parts import Constant, Part, reach_path
from eastgate.dialects.kuadrant.authorino.paths import cel_mentions, selected_mentions


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
