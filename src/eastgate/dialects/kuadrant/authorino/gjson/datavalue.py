"""Values that are parts of the document itself."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.kuadrant.authorino.gjson import jsontext
from eastgate.dialects.kuadrant.authorino.gjson.bounds import Budget
from eastgate.dialects.kuadrant.authorino.gjson.numbers import integer_float, integer_text, plain_decimal
from eastgate.dialects.kuadrant.authorino.gjson.textvalue import first_container
from eastgate.dialects.kuadrant.authorino.gjson.values import CONTAINERS, JsonKind, Value


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
        """Return the data as Go's encoding/json would write it."""
        return jsontext.write_json(self._data, self._budget)

    @property
    def source(self) -> str:
        """Return `raw`: nothing is left around data."""
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
        """Return the member of an object with exactly this key, found without a search."""
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
        """Return the very data that was given."""
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
