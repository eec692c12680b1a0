"""Kubernetes' own objects, compared with shapes: only the described fields are checked.

Unlike a policy, such an object may have any other field, and a null counts as absent. An error is reported once, at its
place, with the path of the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from eastgate.basics.diagnostics import Code, Reporter, did_you_mean
from eastgate.cluster import codes
from eastgate.cluster.objects import Manifest
from eastgate.reading.manifests.shapes.constraints import Demand
from eastgate.reading.manifests.shapes.shape import (
    Anything,
    Choice,
    Field,
    Flag,
    ListOf,
    MapOf,
    Record,
    Shape,
    Text,
    Whole,
)

_Path: TypeAlias = tuple[str | int, ...]
_HELP = {"a mapping": "write its fields below it, indented", "a list": "start each entry with `- `"}


class Examination:
    """One object under examination, and the reporter of its errors."""

    __slots__ = ("_manifest", "_reporter")

    def __init__(self, manifest: Manifest, reporter: Reporter) -> None:
        self._manifest = manifest
        self._reporter = reporter

    def examine(self, shape: Shape[Any], value: object, path: _Path = ()) -> None:
        """Report every difference between a value, which is not null, and a shape."""
        match shape:
            case Text():
                if self._is(isinstance(value, str), value, "a string", path):
                    self._demand(shape.rule, value, path)
            case Whole():
                self._whole(shape, value, path)
            case Choice():
                if isinstance(value, str):
                    self._choice(shape, value, path)
                else:
                    self._mistyped(value, "a string", path)
            case Flag():
                self._is(isinstance(value, bool), value, "true or false", path)
            case ListOf():
                self._list(shape, value, path)
            case MapOf():
                self._map(shape, value, path)
            case Record():
                self._record(shape, value, path)
            case Anything():
                pass

    def report(self, code: Code, message: str, path: _Path, help: str | None) -> None:  # noqa: A002
        """Report a finding about the value at a path, or the nearest value above it."""
        self._reporter.report(code, message, self._manifest.locate(*path), help=help)

    def _record(self, shape: Record[Any], value: object, path: _Path) -> None:
        if not isinstance(value, dict):
            way_out = shape.shorthand.format(value) if shape.shorthand and isinstance(value, str) else None
            self._mistyped(value, "a mapping", path, way_out)
            return
        entries: Mapping[str, object] = value
        for name, of in shape.fields.items():
            if of.when is None or of.when(entries):
                self._field(of, name, entries, path)
        for rule in shape.rules:
            self._demand(rule, entries, path)

    def _field(self, of: Field[Any], name: str, entries: Mapping[str, object], path: _Path) -> None:
        value, below = entries.get(name), (*path, name)
        if value is not None:
            self.examine(of.shape, value, below)
        elif of.required or (of.needed is not None and of.needed(entries)):
            self.report(codes.MISSING, f"{_spelled(below)} is missing", path, f"write `{name}: ..` here")
        if of.implied and not isinstance(value, dict):
            self.examine(of.shape, {}, below)

    def _demand(self, rule: object, value: object, path: _Path) -> None:
        if isinstance(rule, Demand):
            for problem in rule.problems(value):
                self.report(problem.code, problem.message, (*path, *problem.below), problem.help)

    def _list(self, shape: ListOf[Any], value: object, path: _Path) -> None:
        if not isinstance(value, list):
            self._mistyped(value, "a list", path)
            return
        for position, item in enumerate(value):
            self.examine(shape.item, item, (*path, position))
        self._demand(shape.rule, value, path)

    def _map(self, shape: MapOf[Any], value: object, path: _Path) -> None:
        if not isinstance(value, dict):
            self._mistyped(value, "a mapping", path)
            return
        for name, entry in value.items():
            if isinstance(shape.value, Text) and not isinstance(entry, str):
                self._no_string(name, entry, path)
        self._demand(shape.rule, value, path)

    def _no_string(self, name: str, value: object, path: _Path) -> None:
        message = f"`{name}` in {_spelled(path)} is {_described(value)}, not a string"
        quoted = self._quoted(value, (*path, name))
        way_out = f"write `{name}: {quoted}`" if quoted else f"write a string, or remove `{name}`"
        self.report(codes.NOT_A_STRING, message, (*path, name), way_out)

    def _whole(self, shape: Whole, value: object, path: _Path) -> None:
        is_port = shape.code is codes.BAD_PORT
        way_out = f"write {shape.what} between {shape.minimum} and {shape.maximum}"
        if isinstance(value, str) and shape.or_name:
            if value.isdigit():
                # Kubernetes takes this for a name. No port has such a name, so that the reference would lead nowhere.
                self._mistyped(value, "a number", path, f"write {value} without quotes")
        elif isinstance(value, bool) or not isinstance(value, int):
            self._mistyped(value, "a whole number", path, None if is_port else way_out)
        elif not shape.minimum <= value <= shape.maximum:
            message = f"port {value} is out of range" if is_port else f"{_spelled(path)} cannot be {value}"
            self.report(shape.code, message, path, way_out)

    def _choice(self, shape: Choice, value: str, path: _Path) -> None:
        allowed = shape.options
        if value in allowed:
            return
        same = next((option for option in allowed if option.lower() == value.lower()), None)
        meant = same or did_you_mean(value, allowed)
        way_out = f"write {meant}" if meant else f"write {', '.join(allowed[:-1])} or {allowed[-1]}"
        self.report(codes.BAD_VALUE, f"{_spelled(path)} cannot be `{value}`", path, way_out)

    def _is(self, fits: bool, value: object, wanted: str, path: _Path) -> bool:
        if not fits:
            self._mistyped(value, wanted, path)
        return fits

    def _mistyped(self, value: object, wanted: str, path: _Path, help: str | None = None) -> None:  # noqa: A002
        message = f"{_spelled(path)} is {_described(value)}; it must be {wanted}"
        self.report(codes.WRONG_TYPE, message, path, help or self._way_out(value, wanted, path))

    def _way_out(self, value: object, wanted: str, path: _Path) -> str:
        if wanted == "a string" and (quoted := self._quoted(value, path)):
            return f"quote it: {quoted}"
        if wanted == "a whole number" and isinstance(value, str) and value.isdigit():
            return f"write {value} without quotes"
        return _HELP.get(wanted, f"write {wanted}")

    def _quoted(self, value: object, path: _Path) -> str | None:
        """Return the written text of a value in quotes, if the value is no string only because quotes are missing."""
        if not isinstance(value, bool | int | float):
            return None
        span = self._manifest.locate(*path)
        plain = str(value).lower() if isinstance(value, bool) else str(value)
        return f'"{span.underlined if span is not None else plain}"'


def _spelled(path: _Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return f"`{text}`"


def _described(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a mapping"
