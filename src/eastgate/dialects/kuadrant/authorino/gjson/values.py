"""A value on a path: plain data of the document, or JSON text from a modifier or multipath.

Both have the same interface. Data stays data as long as possible, because that is fast. Text stays text, because it may
contain duplicate keys, spaces, or text that is not quite JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum, auto
from typing import Final, Protocol, TypeVar

from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.gjson import jsontext
from eastgate.dialects.kuadrant.authorino.gjson.bounds import Budget
from eastgate.dialects.kuadrant.authorino.gjson.jsontext import (
    integer_float,
    integer_text,
    number_to_int,
    plain_decimal,
    plain_number,
    text_is_digits,
    to_float,
)


class JsonKind(Enum):
    """The type of a JSON value. A missing value is a null without text."""

    NULL = auto()
    FALSE = auto()
    TRUE = auto()
    NUMBER = auto()
    STRING = auto()
    OBJECT = auto()
    ARRAY = auto()


CONTAINERS: Final = (JsonKind.OBJECT, JsonKind.ARRAY)


class Unterminated(Exception):  # noqa: N818 - a way to end a walk, which never leaves this package
    """A string in text that is not quite JSON never ends. A walk through its array then finds nothing."""


class Value(Protocol):
    """The interface of data and text on a path."""

    @property
    def kind(self) -> JsonKind:
        pass

    @property
    def exists(self) -> bool:
        """Return whether the value exists."""

    @property
    def raw(self) -> str:
        pass

    @property
    def source(self) -> str:
        """Return the text for the rest of a path: `raw`, and the text that a modifier may have left around it."""

    @property
    def string(self) -> str:
        """Return the value in a comparison or a template: a string itself, the digits of a number, an empty text for
        null.
        """

    @property
    def number(self) -> float:
        """Return the number, or 0 for any other value."""

    def container(self) -> Value | None:
        """Return the object or array for the rest of a path: the value itself, or the first one in its text."""

    def lines(self) -> Iterator[Value]:
        """Return the consecutive values in the text. Raises Unterminated at a string that never ends."""

    def walked(self) -> Iterator[Value]:
        """Return the elements of an array. Raises Unterminated at a string that never ends."""

    def elements(self) -> Iterator[Value]:
        """Return the elements of an array, up to a string that never ends."""

    def items(self) -> Iterator[Value]:
        """Return the elements of an array as gjson lists them, which skips more invalid JSON."""

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


# Values with their JSON text, and how they are found in it.


_Item = TypeVar("_Item")

_VALUE_START: Final = regex(r'[{\["ntf+\-0-9iIN]')
_ELEMENT_OR_END: Final = regex(r'[{\["ntf+\-0-9iIN\]]')
_ITEM_OR_END: Final = regex(r'[{\["ntf\-0-9\]}]')
_KEY_OR_END: Final = regex(r'["}]')
_OPENING: Final = regex(r"[{\[]")
_NOT_SPACE: Final = regex(r"[^\x00- ]")


class TextValue:
    """A value with its JSON text."""

    __slots__ = ("_budget", "_source", "kind", "raw")

    def __init__(self, kind: JsonKind, raw: str, budget: Budget, source: str | None = None) -> None:
        self.kind = kind
        self.raw = raw
        self._budget = budget
        self._source = source

    @property
    def exists(self) -> bool:
        return self.kind is not JsonKind.NULL or self.raw != ""

    @property
    def source(self) -> str:
        return self.raw if self._source is None else self._source

    @property
    def string(self) -> str:
        match self.kind:
            case JsonKind.NULL:
                return ""
            case JsonKind.FALSE:
                return "false"
            case JsonKind.TRUE:
                return "true"
            case JsonKind.NUMBER:
                return self.raw if text_is_digits(self.raw) else plain_decimal(self.number)
            case JsonKind.STRING:
                end = jsontext.end_of_string(self.raw, 0)
                return self._budget.afford(jsontext.unescaped(self.raw[1 : end - 1 if end else None]))
            case _:
                return self.raw

    @property
    def number(self) -> float:
        return to_float(self.raw) if self.kind is JsonKind.NUMBER else 0.0

    def container(self) -> Value | None:
        return first_container(self.source, self._budget)

    def lines(self) -> Iterator[Value]:
        return _elements(self.source, 0, self._budget)

    def walked(self) -> Iterator[Value]:
        return _elements(self.raw, 1, self._budget) if self.kind is JsonKind.ARRAY else iter(())

    def elements(self) -> Iterator[Value]:
        with suppress(Unterminated):
            yield from self.walked()

    def items(self) -> Iterator[Value]:
        """Return the elements. A lone `n`, as `@extract` gives it, is a null here and a number elsewhere."""
        if self.kind is not JsonKind.ARRAY:
            return
        with suppress(Unterminated):
            for item in _elements(self.raw, 1, self._budget, _ITEM_OR_END):
                is_null = item.kind is JsonKind.NUMBER and item.raw.startswith("n")
                yield TextValue(JsonKind.NULL, item.raw, self._budget) if is_null else item

    def members(self) -> Iterator[tuple[Value, Value]]:
        return _members(self.raw, self._budget) if self.kind is JsonKind.OBJECT else iter(())

    def plain(self) -> object:
        """Return plain data. Invalid JSON is read leniently, and the first value of a duplicate key counts."""
        match self.kind:
            case JsonKind.NULL:
                return None
            case JsonKind.FALSE | JsonKind.TRUE:
                return self.kind is JsonKind.TRUE
            case JsonKind.STRING:
                return self.string
            case JsonKind.NUMBER:
                return plain_number(self.raw)
            case JsonKind.ARRAY:
                return [item.plain() for item in self._nested(self.items())]
            case JsonKind.OBJECT:
                data: dict[str, object] = {}
                for key, item in self._nested(self.members()):
                    data.setdefault(key.string, item.plain())
                return data

    def _nested(self, items: Iterator[_Item]) -> Iterator[_Item]:
        self._budget.enter()
        yield from items
        self._budget.leave()


def missing_value(budget: Budget) -> TextValue:
    """Return the value of a path that finds nothing."""
    return TextValue(JsonKind.NULL, "", budget)


def parse_value(text: str, budget: Budget) -> TextValue:
    """Return the first value in a text. More text may follow."""
    start = _NOT_SPACE.search(text)
    if start is None:
        return TextValue(JsonKind.NULL, "", budget, text)
    at, first = start.start(), start[0]
    if first in "{[":
        return TextValue(JsonKind.OBJECT if first == "{" else JsonKind.ARRAY, text[at:], budget, text)
    if _VALUE_START.match(first) is None:
        return TextValue(JsonKind.NULL, "", budget, text)
    kind, end = _scalar_at(text, at)
    return TextValue(kind, text[at : end or len(text)], budget, text)


def first_container(text: str, budget: Budget) -> TextValue | None:
    """Return the first object or array in a text, even inside a string: `"[1,2]"|0` is 1 in the real gjson too."""
    budget.spend(len(text))
    opening = _OPENING.search(text)
    if opening is None:
        return None
    return TextValue(JsonKind.OBJECT if opening[0] == "{" else JsonKind.ARRAY, text[opening.start() :], budget)


def _scalar_at(text: str, at: int) -> tuple[JsonKind, int | None]:
    """Return the kind and the end of the string, word or number at a position; None for a string without an end."""
    match text[at]:
        case '"':
            return JsonKind.STRING, jsontext.end_of_string(text, at)
        case "t":
            return JsonKind.TRUE, jsontext.end_of_word(text, at)
        case "f":
            return JsonKind.FALSE, jsontext.end_of_word(text, at)
        case "n" if text[at + 1 : at + 2] in ("u", ""):
            return JsonKind.NULL, jsontext.end_of_word(text, at)
    return JsonKind.NUMBER, jsontext.end_of_number(text, at)


def _value_at(text: str, at: int, budget: Budget) -> tuple[TextValue, int] | None:
    if text[at] in "{[":
        end: int | None = jsontext.end_of_block(text, at)
        kind = JsonKind.OBJECT if text[at] == "{" else JsonKind.ARRAY
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
        value_and_end = _value_at(text, start.start(), budget)
        if value_and_end is None:
            raise Unterminated
        value, at = value_and_end
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


# Values that are parts of the document itself.


class DataValue:
    """A part of the document."""

    __slots__ = ("_budget", "_data", "kind")

    def __init__(self, data: object, budget: Budget) -> None:
        self._data = data
        self._budget = budget
        self.kind = _kind_of(data)

    exists = True

    @property
    def raw(self) -> str:
        """Return the data as Go's encoding/json would write it."""
        return jsontext.write_json(self._data, self._budget)

    @property
    def source(self) -> str:
        """Return `raw`, because no text surrounds data."""
        return self.raw

    @property
    def string(self) -> str:
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
        match self._data:
            case bool():
                return 0.0
            case int():
                return integer_float(self._data)
            case float():
                return self._data
        return 0.0

    def get(self, key: str) -> DataValue | None:
        """Return the member of an object with exactly this key, without a search."""
        if isinstance(self._data, dict) and key in self._data:
            return DataValue(self._data[key], self._budget)
        return None

    def container(self) -> Value | None:
        if self.kind in CONTAINERS:
            return self
        return first_container(self.raw, self._budget) if self.kind is JsonKind.STRING else None

    def lines(self) -> Iterator[Value]:
        """Return one line, the data itself."""
        yield self

    def elements(self) -> Iterator[Value]:
        if isinstance(self._data, list | tuple):
            for item in self._data:
                self._budget.spend(1)
                yield DataValue(item, self._budget)

    walked = elements
    items = elements

    def members(self) -> Iterator[tuple[Value, Value]]:
        if isinstance(self._data, dict):
            for key, item in self._data.items():
                self._budget.spend(1)
                yield DataValue(str(key), self._budget), DataValue(item, self._budget)

    def plain(self) -> object:
        """Return the data itself."""
        return self._data


def _kind_of(data: object) -> JsonKind:
    match data:
        case None:
            return JsonKind.NULL
        case bool():
            return JsonKind.TRUE if data else JsonKind.FALSE
        case int() | float():
            return JsonKind.NUMBER
        case dict():
            return JsonKind.OBJECT
        case list() | tuple():
            return JsonKind.ARRAY
    return JsonKind.STRING
