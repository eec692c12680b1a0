"""A value on its way along a path: plain data that was given, or JSON text that a modifier or multipath made.

Both answer the same questions. Data stays data as long as possible because that is fast; text stays text because
it may hold what data cannot, such as a key twice, spaces, or something that is not quite JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, Protocol

from eastgate.dialects.kuadrant.authorino.gjson.numbers import number_to_int, to_float


class JsonKind(Enum):
    """The type of a JSON value. What does not exist is a null without text."""

    NULL = auto()
    FALSE = auto()
    TRUE = auto()
    NUMBER = auto()
    STRING = auto()
    OBJECT = auto()
    ARRAY = auto()


CONTAINERS: Final = (JsonKind.OBJECT, JsonKind.ARRAY)


class Unterminated(Exception):  # noqa: N818 - a way to end a walk, which never leaves this package
    """A string in text that is not quite JSON never ends: a walk through the array that it is in finds nothing."""


class Value(Protocol):
    """The interface of data and text for a path."""

    @property
    def kind(self) -> JsonKind:
        pass

    @property
    def exists(self) -> bool:
        """Return whether there is anything."""

    @property
    def raw(self) -> str:
        pass

    @property
    def source(self) -> str:
        """Return the text that the rest of a path works on: `raw`, and what a modifier may have left around it."""

    @property
    def string(self) -> str:
        """Return the value in a comparison or a template: a string itself, a number's digits, nothing for null."""

    @property
    def number(self) -> float:
        """Return the number it is; 0 for anything else."""

    def container(self) -> Value | None:
        """Return the object or array that the rest of a path walks: itself, or the first one in its text."""

    def lines(self) -> Iterator[Value]:
        """Return the values that follow each other in its text; at a string that never ends, Unterminated."""

    def walked(self) -> Iterator[Value]:
        """Return the elements of an array; at a string that never ends, Unterminated."""

    def elements(self) -> Iterator[Value]:
        """Return the elements of an array, up to a string that never ends."""

    def items(self) -> Iterator[Value]:
        """Return the elements of an array as gjson lists them, which skips more of what is not JSON."""

    def members(self) -> Iterator[tuple[Value, Value]]:
        """Return the keys and values of an object."""

    def plain(self) -> object:
        pass


def whole_number(value: Value) -> int:
    """Convert an argument of a modifier to a whole number, as Go's Result.Int() does."""
    match value.kind:
        case JsonKind.TRUE:
            return 1
        case JsonKind.NUMBER:
            return number_to_int(value.number, value.raw)
        case JsonKind.STRING:
            return number_to_int(to_float(value.string), value.string)
    return 0
