"""A value on its way along a path: plain data that was given, or JSON text that a modifier or multipath made.

Both answer the same questions. Data stays data as long as possible because that is fast; text stays text because
it may hold what data cannot, such as a key twice, spaces, or something that is not quite JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, Protocol, TypeVar

from eastgate.gjson import jsontext
from eastgate.gjson.bounds import Budget
from eastgate.gjson.numbers import (
    integer_float,
    integer_text,
    number_to_int,
    plain_decimal,
    plain_number,
    text_is_digits,
    to_float,
)

_Item = TypeVar("_Item")

_VALUE_START: Final = re.compile(r'[{\["ntf+\-0-9iIN]')
_ELEMENT_OR_END: Final = re.compile(r'[{\["ntf+\-0-9iIN\]]')
_ITEM_OR_END: Final = re.compile(r'[{\["ntf\-0-9\]}]')
_KEY_OR_END: Final = re.compile(r'["}]')
_OPENING: Final = re.compile(r"[{\[]")
_NOT_SPACE: Final = re.compile(r"[^\x00- ]")


class Kind(Enum):
    """The type of a JSON value. What does not exist is a null without text."""

    NULL = auto()
    FALSE = auto()
    TRUE = auto()
    NUMBER = auto()
    STRING = auto()
    OBJECT = auto()
    ARRAY = auto()


CONTAINERS: Final = (Kind.OBJECT, Kind.ARRAY)


class Value(Protocol):
    """What a path can ask of data and of text alike."""

    @property
    def kind(self) -> Kind:
        """Its JSON type."""

    @property
    def exists(self) -> bool:
        """Whether there is anything."""

    @property
    def raw(self) -> str:
        """Its JSON text."""

    @property
    def source(self) -> str:
        """The text that the rest of a path works on: `raw`, and what a modifier may have left around it."""

    @property
    def string(self) -> str:
        """What it is in a comparison or a template: a string itself, a number's digits, nothing for null."""

    @property
    def number(self) -> float:
        """The number it is; 0 for anything else."""

    def container(self) -> Value | None:
        """The object or array that the rest of a path walks: itself, or the first one in its text."""

    def lines(self) -> Iterator[Value]:
        """The values that follow each other in its text."""

    def elements(self) -> Iterator[Value]:
        """The elements of an array."""

    def items(self) -> Iterator[Value]:
        """The elements of an array as gjson lists them, which skips more of what is not JSON."""

    def members(self) -> Iterator[tuple[Value, Value]]:
        """The keys and values of an object."""

    def plain(self) -> object:
        """Plain data."""


class DataValue:
    """A part of the document that was given."""

    __slots__ = ("_budget", "_data", "kind")

    def __init__(self, data: object, budget: Budget) -> None:
        self._data = data
        self._budget = budget
        self.kind = _kind_of(data)

    exists = True

    @property
    def raw(self) -> str:
        """The data as Go's encoding/json would write it."""
        return jsontext.written(self._data, self._budget)

    @property
    def source(self) -> str:
        """The same as `raw`: nothing is left around data."""
        return self.raw

    @property
    def string(self) -> str:
        """See Value."""
        match self._data:
            case None:
                return ""
            case bool():
                return "true" if self._data else "false"
            case int():
                return integer_text(self._data)
            case float():
                return plain_decimal(self._data)
            case dict() | list() | tuple():
                return self.raw
            case _:
                return self._budget.afford(jsontext.well_formed(str(self._data)))

    @property
    def number(self) -> float:
        """See Value."""
        match self._data:
            case bool():
                return 0.0
            case int():
                return integer_float(self._data)
            case float():
                return self._data
        return 0.0

    def get(self, key: str) -> DataValue | None:
        """The member of an object with exactly this key, found without a search."""
        if isinstance(self._data, dict) and key in self._data:
            return DataValue(self._data[key], self._budget)
        return None

    def container(self) -> Value | None:
        """See Value."""
        if self.kind in CONTAINERS:
            return self
        return first_container(self.raw, self._budget) if self.kind is Kind.STRING else None

    def lines(self) -> Iterator[Value]:
        """One line, the data itself."""
        yield self

    def elements(self) -> Iterator[Value]:
        """See Value."""
        if isinstance(self._data, list | tuple):
            for item in self._data:
                self._budget.spend(1)
                yield DataValue(item, self._budget)

    items = elements

    def members(self) -> Iterator[tuple[Value, Value]]:
        """See Value."""
        if isinstance(self._data, dict):
            for key, item in self._data.items():
                self._budget.spend(1)
                yield DataValue(str(key), self._budget), DataValue(item, self._budget)

    def plain(self) -> object:
        """The very data that was given."""
        return self._data


class TextValue:
    """A value that is known by its JSON text."""

    __slots__ = ("_budget", "_source", "kind", "raw")

    def __init__(self, kind: Kind, raw: str, budget: Budget, source: str | None = None) -> None:
        self.kind = kind
        self.raw = raw
        self._budget = budget
        self._source = source

    @property
    def exists(self) -> bool:
        """See Value."""
        return self.kind is not Kind.NULL or self.raw != ""

    @property
    def source(self) -> str:
        """See Value."""
        return self.raw if self._source is None else self._source

    @property
    def string(self) -> str:
        """See Value."""
        match self.kind:
            case Kind.NULL:
                return ""
            case Kind.FALSE:
                return "false"
            case Kind.TRUE:
                return "true"
            case Kind.NUMBER:
                return self.raw if text_is_digits(self.raw) else plain_decimal(self.number)
            case Kind.STRING:
                end = jsontext.end_of_string(self.raw, 0)
                return self._budget.afford(jsontext.unescaped(self.raw[1 : end - 1 if end else None]))
            case _:
                return self.raw

    @property
    def number(self) -> float:
        """See Value."""
        return to_float(self.raw) if self.kind is Kind.NUMBER else 0.0

    def container(self) -> Value | None:
        """See Value."""
        return first_container(self.source, self._budget)

    def lines(self) -> Iterator[Value]:
        """See Value."""
        return _elements(self.source, 0, self._budget)

    def elements(self) -> Iterator[Value]:
        """See Value."""
        return _elements(self.raw, 1, self._budget) if self.kind is Kind.ARRAY else iter(())

    def items(self) -> Iterator[Value]:
        """See Value. A lone `n`, which `@extract` gives, is a null here and a number elsewhere."""
        if self.kind is not Kind.ARRAY:
            return
        for item in _elements(self.raw, 1, self._budget, _ITEM_OR_END):
            is_null = item.kind is Kind.NUMBER and item.raw.startswith("n")
            yield TextValue(Kind.NULL, item.raw, self._budget) if is_null else item

    def members(self) -> Iterator[tuple[Value, Value]]:
        """See Value."""
        return _members(self.raw, self._budget) if self.kind is Kind.OBJECT else iter(())

    def plain(self) -> object:
        """Plain data; what is not quite JSON is read forgivingly, and of a key that is there twice the first counts."""
        match self.kind:
            case Kind.NULL:
                return None
            case Kind.FALSE | Kind.TRUE:
                return self.kind is Kind.TRUE
            case Kind.STRING:
                return self.string
            case Kind.NUMBER:
                return plain_number(self.raw)
            case Kind.ARRAY:
                return [item.plain() for item in self._nested(self.items())]
            case Kind.OBJECT:
                data: dict[str, object] = {}
                for key, item in self._nested(self.members()):
                    data.setdefault(key.string, item.plain())
                return data

    def _nested(self, items: Iterator[_Item]) -> Iterator[_Item]:
        self._budget.enter()
        yield from items
        self._budget.leave()


def missing(budget: Budget) -> TextValue:
    """What a path gives that leads nowhere."""
    return TextValue(Kind.NULL, "", budget)


def parsed(text: str, budget: Budget) -> TextValue:
    """The first value in a text, which may hold more than it."""
    start = _NOT_SPACE.search(text)
    if start is None:
        return TextValue(Kind.NULL, "", budget, text)
    at, first = start.start(), start[0]
    if first in "{[":
        return TextValue(Kind.OBJECT if first == "{" else Kind.ARRAY, text[at:], budget, text)
    if _VALUE_START.match(first) is None:
        return TextValue(Kind.NULL, "", budget, text)
    kind, end = _scalar_at(text, at)
    return TextValue(kind, text[at : end or len(text)], budget, text)


def first_container(text: str, budget: Budget) -> TextValue | None:
    """The first object or array in a text, even inside a string: `"[1,2]"|0` is 1 in the real gjson too."""
    budget.spend(len(text))
    opening = _OPENING.search(text)
    if opening is None:
        return None
    return TextValue(Kind.OBJECT if opening[0] == "{" else Kind.ARRAY, text[opening.start() :], budget)


def whole_number(value: Value) -> int:
    """Go's Result.Int(): what a modifier's argument means where a whole number is asked for."""
    match value.kind:
        case Kind.TRUE:
            return 1
        case Kind.NUMBER:
            return number_to_int(value.number, value.raw)
        case Kind.STRING:
            return number_to_int(to_float(value.string), value.string)
    return 0


def _kind_of(data: object) -> Kind:
    match data:
        case None:
            return Kind.NULL
        case bool():
            return Kind.TRUE if data else Kind.FALSE
        case int() | float():
            return Kind.NUMBER
        case dict():
            return Kind.OBJECT
        case list() | tuple():
            return Kind.ARRAY
    return Kind.STRING


def _scalar_at(text: str, at: int) -> tuple[Kind, int | None]:
    """The kind of the string, word or number at a place and its end; None for a string without one."""
    match text[at]:
        case '"':
            return Kind.STRING, jsontext.end_of_string(text, at)
        case "t":
            return Kind.TRUE, jsontext.end_of_word(text, at)
        case "f":
            return Kind.FALSE, jsontext.end_of_word(text, at)
        case "n" if text[at + 1 : at + 2] in ("u", ""):
            return Kind.NULL, jsontext.end_of_word(text, at)
    return Kind.NUMBER, jsontext.end_of_number(text, at)


def _value_at(text: str, at: int, budget: Budget) -> tuple[TextValue, int] | None:
    if text[at] in "{[":
        end: int | None = jsontext.end_of_block(text, at)
        kind = Kind.OBJECT if text[at] == "{" else Kind.ARRAY
    else:
        kind, end = _scalar_at(text, at)
    if end is None:
        return None
    budget.spend(end - at)
    return TextValue(kind, text[at:end], budget), end


def _elements(
    text: str, at: int, budget: Budget, start_or_end: re.Pattern[str] = _ELEMENT_OR_END
) -> Iterator[TextValue]:
    while (start := start_or_end.search(text, at)) and start[0] not in "]}":
        found = _value_at(text, start.start(), budget)
        if found is None:
            return
        value, at = found
        yield value


def _members(text: str, budget: Budget) -> Iterator[tuple[TextValue, TextValue]]:
    at = 1
    while (start := _KEY_OR_END.search(text, at)) and start[0] == '"':
        key = _value_at(text, start.start(), budget)
        if key is None or (value_start := _VALUE_START.search(text, key[1])) is None:
            return
        value = _value_at(text, value_start.start(), budget)
        if value is None:
            return
        at = value[1]
        yield key[0], value[0]
