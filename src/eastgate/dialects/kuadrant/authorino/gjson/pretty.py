"""`@pretty`: JSON for people, laid out exactly as the real one does, since a template may print it."""

from __future__ import annotations

from typing import Final

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.gjson.bounds import MAX_TEXT, Budget, TooMuch
from eastgate.dialects.kuadrant.authorino.gjson.queries import is_true
from eastgate.dialects.kuadrant.authorino.gjson.textvalue import parse_value
from eastgate.dialects.kuadrant.authorino.gjson.values import CONTAINERS, JsonKind, Value, whole_number

_WORDS: Final = {JsonKind.NULL: "null", JsonKind.TRUE: "true", JsonKind.FALSE: "false"}


@dataclass(slots=True)
class _Options:
    width: int = 80
    prefix: str = ""
    indent: str = "  "
    sort_keys: bool = False


def pretty(value: Value, argument: str, budget: Budget) -> str:
    """Return the value over several lines; an array that fits into the width stays on one."""
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
    """Bytes rather than characters, because the width counts them."""

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
        """Print without line breaks; False as soon as that cannot be: an object is never flat, nor what is too long."""
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
        """Turn a space that ends the line into the line break."""
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
