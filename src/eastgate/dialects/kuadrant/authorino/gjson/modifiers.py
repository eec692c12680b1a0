"""The modifiers of gjson itself: `@reverse`, `@keys` and so on.

Each takes a value and the text of its argument, and returns a value or JSON text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.gjson.authorino import AUTHORINO
from eastgate.dialects.kuadrant.authorino.gjson.bounds import MAX_TEXT, Budget, Pieces, TooMuch
from eastgate.dialects.kuadrant.authorino.gjson.jsontext import is_json, quoted, without_spaces
from eastgate.dialects.kuadrant.authorino.gjson.queries import is_true
from eastgate.dialects.kuadrant.authorino.gjson.values import (
    CONTAINERS,
    JsonKind,
    TextValue,
    Value,
    missing_value,
    parse_value,
    whole_number,
)

# `@pretty`: JSON with line breaks, exactly as the original prints it, because a template may contain it.


_WORDS: Final = {JsonKind.NULL: "null", JsonKind.TRUE: "true", JsonKind.FALSE: "false"}


@dataclass(slots=True)
class _Options:
    width: int = 80
    prefix: str = ""
    indent: str = "  "
    sort_keys: bool = False


def pretty(value: Value, argument: str, budget: Budget) -> str:
    """Return the value over several lines. An array that fits into the width stays on one line."""
    options = _options(argument, budget)
    printer = _Printer(options, budget)
    if value.exists:
        printer.value(value, 0)
    return printer.finished()


def _options(argument: str, budget: Budget) -> _Options:
    options = _Options()
    for key, item in parse_value(argument, budget).members():
        match key.string:
            case "sortKeys":
                options.sort_keys = is_true(item)
            case "indent":
                options.indent = _only_spaces(item.string)
            case "prefix":
                options.prefix = _only_spaces(item.string)
            case "width":
                options.width = whole_number(item)
    return options


def _only_spaces(text: str) -> str:
    return "".join(character for character in text if character in " \t\n\r")


class _Printer:
    """Collects bytes rather than characters, because the width counts bytes."""

    __slots__ = ("_budget", "_line", "_options", "_out")

    def __init__(self, options: _Options, budget: Budget) -> None:
        self._options = options
        self._budget = budget
        self._out = bytearray(options.prefix.encode())
        self._line = 0

    def finished(self) -> str:
        if self._out:
            self._write("\n")
        return self._out.decode()

    def value(self, value: Value, level: int) -> None:
        if value.kind not in CONTAINERS:
            self._write(_WORDS.get(value.kind) or value.raw)
        elif value.kind is JsonKind.OBJECT:
            self._object(value, level)
        elif not self._on_one_line(value):
            self._array(value, level)

    def _object(self, value: Value, level: int) -> None:
        self._budget.enter()
        members = list(value.members())
        if self._options.sort_keys:
            members.sort(key=lambda member: member[0].string)
        self._write("{")
        for at, (key, item) in enumerate(members):
            if at:
                self._write(",")
            self._new_line(level + 1)
            self._write(key.raw + ": ")
            self.value(item, level + 1)
        if members:
            self._new_line(level)
        self._write("}")
        self._budget.leave()

    def _array(self, value: Value, level: int) -> None:
        self._budget.enter()
        self._write("[")
        empty = True
        for item in value.elements():
            if not empty:
                self._write("," if self._options.width == -1 else ", ")
            self._new_line(level + 1)
            self.value(item, level + 1)
            empty = False
        if not empty:
            self._new_line(level)
        self._write("]")
        self._budget.leave()

    def _on_one_line(self, value: Value) -> bool:
        room = self._options.width - (len(self._out) - self._line)
        if self._options.width <= 0 or room <= 3:
            return False
        start = len(self._out)
        if self._flat(value, start + room) and len(self._out) - start <= room:
            return True
        del self._out[start:]
        return False

    def _flat(self, value: Value, end: int) -> bool:
        """Print without line breaks.

        Return False as soon as that is impossible: an object is never flat, nor is a long value.
        """
        if value.kind is JsonKind.OBJECT or len(self._out) > end:
            return False
        if value.kind is not JsonKind.ARRAY:
            self._write(_WORDS.get(value.kind) or value.raw)
            return True
        self._budget.enter()
        self._write("[")
        for at, item in enumerate(value.elements()):
            if at:
                self._write(", ")
            if not self._flat(item, end):
                self._budget.leave()
                return False
        self._write("]")
        self._budget.leave()
        return True

    def _new_line(self, level: int) -> None:
        """Replace a space at the end of the line by the line break."""
        self._line = len(self._out)
        if self._out.endswith(b" "):
            self._out[-1:] = b"\n"
        else:
            self._write("\n")
        self._write(self._options.prefix + self._options.indent * level)

    def _write(self, text: str) -> None:
        self._budget.spend(len(text))
        self._out += text.encode("utf-8", "replace")
        if len(self._out) > MAX_TEXT:
            raise TooMuch(f"the selection produces more than {MAX_TEXT} characters")


Modifier: TypeAlias = Callable[[Value, str, Budget], Value | str]


def _this(value: Value, _argument: str, _budget: Budget) -> Value | str:
    return value


def _valid(value: Value, _argument: str, budget: Budget) -> Value | str:
    return value if not isinstance(value, TextValue) or is_json(value.source) else missing_value(budget)


def _ugly(value: Value, _argument: str, _budget: Budget) -> Value | str:
    return without_spaces(value.source) if isinstance(value, TextValue) else value


def _reverse(value: Value, _argument: str, budget: Budget) -> Value | str:
    match value.kind:
        case JsonKind.ARRAY:
            return _listed(reversed([item.raw for item in value.elements()]), budget)
        case JsonKind.OBJECT:
            return _object(reversed([(key.raw, item.raw) for key, item in value.members()]), budget)
    return value


def _flatten(value: Value, argument: str, budget: Budget) -> Value | str:
    """Flatten the arrays in the array: one level of them, or with {"deep":true} all levels."""
    if value.kind is not JsonKind.ARRAY:
        return value
    pieces = Pieces(budget)
    _flatten_into(pieces, value, _option(argument, "deep", budget), budget)
    return pieces.enclosed("[]")


def _flatten_into(pieces: Pieces, array: Value, deep: bool, budget: Budget) -> None:
    budget.enter()
    for item in array.elements():
        if item.kind is JsonKind.ARRAY and deep:
            _flatten_into(pieces, item, deep, budget)
        else:
            raw = item.raw[1:-1].strip() if item.kind is JsonKind.ARRAY else item.raw
            if raw:
                pieces.add(raw)
    budget.leave()


def _keys(value: Value, _argument: str, budget: Budget) -> Value | str:
    match value.kind:
        case JsonKind.OBJECT:
            return _listed((key.raw for key, _ in value.members()), budget)
        case JsonKind.ARRAY:
            return _listed(("null" for _ in value.elements()), budget)
    return "[null]" if value.exists else "[]"


def _values(value: Value, _argument: str, budget: Budget) -> Value | str:
    match value.kind:
        case JsonKind.OBJECT:
            return _listed((item.raw for _, item in value.members()), budget)
        case JsonKind.ARRAY:
            return value
    return _listed([value.raw] if value.exists else [], budget)


def _join(value: Value, argument: str, budget: Budget) -> Value | str:
    """Merge the objects of an array. The last value of a key counts, or with {"preserve":true} all values are kept."""
    if value.kind is not JsonKind.ARRAY:
        return value
    objects = (item for item in value.elements() if item.kind is JsonKind.OBJECT)
    if _option(argument, "preserve", budget):
        pieces = Pieces(budget)
        for item in objects:
            pieces.add(item.raw[1:-1])
        return pieces.enclosed("{}")
    joined: dict[str, tuple[str, str]] = {}
    for item in objects:
        for key, member in item.members():
            name = key.string
            joined[name] = (joined[name][0] if name in joined else key.raw, member.raw)
    return _object(joined.values(), budget)


def _tostr(value: Value, _argument: str, _budget: Budget) -> Value | str:
    return quoted(value.source)


def _fromstr(value: Value, _argument: str, budget: Budget) -> Value | str:
    valid = not isinstance(value, TextValue) or is_json(value.source)
    return value.string if valid else missing_value(budget)


def _group(value: Value, _argument: str, budget: Budget) -> Value | str:
    """Convert {"a":[1,2],"b":[3,4]} to [{"a":1,"b":3},{"a":2,"b":4}]."""
    if value.kind is not JsonKind.OBJECT:
        return missing_value(budget)
    groups: list[Pieces] = []
    for key, item in value.members():
        for at, element in enumerate(item.elements()):
            if at == len(groups):
                groups.append(Pieces(budget))
            groups[at].add(f"{key.raw}:{element.raw}")
    return _listed((group.enclosed("{}") for group in groups), budget)


def _listed(items: Iterable[str], budget: Budget) -> str:
    pieces = Pieces(budget)
    for item in items:
        pieces.add(item)
    return pieces.enclosed("[]")


def _object(members: Iterable[tuple[str, str]], budget: Budget) -> str:
    pieces = Pieces(budget)
    for key, item in members:
        pieces.add(f"{key}:{item}")
    return pieces.enclosed("{}")


def _option(argument: str, name: str, budget: Budget) -> bool:
    """Return a boolean from a modifier's argument. The last one with that name counts."""
    given = [is_true(item) for key, item in parse_value(argument, budget).members() if key.string == name]
    return bool(given) and given[-1]


MODIFIERS: Final[dict[str, Modifier]] = {
    "flatten": _flatten,
    "fromstr": _fromstr,
    "group": _group,
    "join": _join,
    "keys": _keys,
    "pretty": pretty,
    "reverse": _reverse,
    "this": _this,
    "tostr": _tostr,
    "ugly": _ugly,
    "valid": _valid,
    "values": _values,
    **AUTHORINO,
}
