"""Selects from a document."""

from __future__ import annotations

import re
from functools import lru_cache

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.gjson.bounds import MAX_PATH, Budget, TooMuch
from eastgate.dialects.kuadrant.authorino.gjson.search import find
from eastgate.dialects.kuadrant.authorino.gjson.values import DataValue, JsonKind, Value

_NAME = regex(r"[A-Za-z0-9_-]+", re.ASCII)
_MAX_NAMES = 16
_MAX_SHORT_CHARACTERS = 1024  # characters


@dataclass(frozen=True, slots=True)
class Selection:
    """The result of a path. It shares data with the document, so do not change it."""

    exists: bool
    """Whether the path finds a value. A null exists."""
    value: object
    """Plain data; None if it does not exist."""
    text: str
    """The text that Authorino compares and prints: a string itself, digits of a number, "" for null, otherwise JSON."""

    texts: tuple[str, ...]
    """The texts of `array`, for Authorino's `incl` and `excl`."""

    @property
    def array(self) -> list[object]:
        """Return the items of an array, a list of a single value, or an empty list for null and missing values."""
        if self.value is None:
            return []
        return list(self.value) if isinstance(self.value, list | tuple) else [self.value]


_NOTHING = Selection(False, None, "", ())


def select(document: object, path: str) -> Selection:
    """Select the value at a path in a document of plain JSON data. Raises TooMuch over a limit: fail closed."""
    names = _names(path) if len(path) <= _MAX_SHORT_CHARACTERS else None
    selection = _at(document, names) if names is not None else None
    return select_within(Budget(), document, path) if selection is None else selection


@lru_cache(maxsize=4096)
def _names(path: str) -> tuple[str, ...] | None:
    """Return the names of a path that consists of a few names only, as most paths do."""
    names = tuple(path.split("."))
    return names if len(names) <= _MAX_NAMES and all(map(_NAME.fullmatch, names)) else None


def _at(document: object, names: tuple[str, ...]) -> Selection | None:
    """Select by names alone. Return None if that needs more than lookups, or if the value is not a single word."""
    value = document
    for name in names:
        if type(value) is not dict:
            return None
        if name not in value:
            return _NOTHING
        value = value[name]
    if type(value) is str and len(value) <= _MAX_SHORT_CHARACTERS and value.isascii():
        return Selection(True, value, value, (value,))
    return None


def select_within(budget: Budget, document: object, path: str) -> Selection:
    """Select with a budget that several selections share."""
    if len(path) > MAX_PATH:
        raise TooMuch(f"the path is longer than {MAX_PATH} characters")
    value = find(DataValue(document, budget), path, budget)
    return Selection(value.exists, value.plain(), value.string, _texts(value))


def _texts(value: Value) -> tuple[str, ...]:
    match value.kind:
        case JsonKind.NULL:
            return ()
        case JsonKind.ARRAY:
            return tuple(item.string for item in value.items())
    return (value.string,)
