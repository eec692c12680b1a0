"""A fast reader from plain data to the object that it describes: no positions, no findings.

It reads every object that is not a policy, such as tens of thousands of Pods; nearly all of them are valid. A shape
defines the result: a text stays a text, a list becomes a tuple, and the fields of a mapping become the named arguments
of its `make`. A null counts as absent, as in Kubernetes, and an absent field is not passed. Invalid data raises
`MisfitError`. A caller that needs the error reads the data again with positions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from eastgate.reading.manifests.shapes.constraints import Demand
from eastgate.reading.manifests.shapes.shape import (
    Anything,
    Choice,
    Condition,
    Field,
    Flag,
    ListOf,
    MapOf,
    Record,
    Shape,
    Text,
    Whole,
)

Reader: TypeAlias = Callable[..., Any]
"""Makes the value that data describes. The text is the namespace of its object."""

_Adder: TypeAlias = Callable[[Mapping[str, object], str, dict[str, Any]], None]
_MAX_CACHED_CHARS: Final = 256  # a longer text is not cached


class MisfitError(Exception):
    """Error: data does not fit its shape."""


def reader(shape: Shape[Any], *, checked: bool = True) -> Reader:
    """Return the reader for data of a shape. All rules of the shape must be `Demand`s.

    Without `checked`, only types are checked, because other rules have accepted the data.
    """
    match shape:
        case Anything():
            return lambda value, _: value
        case Text():
            return _text(shape, checked=checked)
        case Whole():
            return _whole(shape)
        case Choice():
            return _choice(shape)
        case Flag():
            return _flag
        case ListOf():
            return _list(shape, checked=checked)
        case MapOf():
            return _map(shape, checked=checked)
        case Record():
            return _record(shape, checked=checked)


def parameter(key: str, of: Field[Any]) -> str | None:
    """Return the parameter for the value of a field; None if each field of its record has its own parameter."""
    if isinstance(of.shape, Record) and of.shape.make is None:
        return None
    return of.into or re.sub(r"(?<![A-Z])([A-Z])", r"_\1", key).lower()


def _demand(rule: object, *, checked: bool) -> Callable[[Any], None] | None:
    """Return a function that raises an error unless a rule holds; None without a rule."""
    if not checked or rule is None:
        return None
    if not isinstance(rule, Demand):
        raise TypeError(f"{rule} needs positions")
    problems = rule.problems

    def demand(value: object) -> None:
        for _ in problems(value):
            raise MisfitError

    return demand


def _text(shape: Text[Any], *, checked: bool) -> Reader:
    demand = _demand(shape.rule, checked=checked)
    make = shape.make
    if demand is None and make is None:
        return _plain_text

    def made(value: str) -> object:
        if demand is not None:
            demand(value)
        return value if make is None else make(value)

    remembered = lru_cache(maxsize=4096)(made)  # many objects hold the same few names

    def text(value: object, _: str) -> object:
        if not isinstance(value, str):
            raise MisfitError
        return (remembered if len(value) <= _MAX_CACHED_CHARS else made)(value)

    return text


def _plain_text(value: object, _: str) -> str:
    if not isinstance(value, str):
        raise MisfitError
    return value


def _flag(value: object, _: str) -> bool:
    if not isinstance(value, bool):
        raise MisfitError
    return value


def _choice(shape: Choice) -> Reader:
    options = {option: option for option in shape.options}

    def choice(value: object, _: str) -> str:
        if not isinstance(value, str) or value not in options:
            raise MisfitError
        return options[value]

    return choice


def _whole(shape: Whole) -> Reader:
    lowest, highest, or_name = shape.minimum, shape.maximum, shape.or_name

    def whole(value: object, _: str) -> int | str:
        if type(value) is int and lowest <= value <= highest:  # a boolean is not a number
            return value
        if or_name and isinstance(value, str) and not value.isdigit():
            return value
        raise MisfitError

    return whole


def _list(shape: ListOf[Any], *, checked: bool) -> Reader:
    item, make = reader(shape.item, checked=checked), shape.make
    demand = _demand(shape.rule, checked=checked)

    def list_of(value: object, home: str) -> object:
        if not isinstance(value, list):
            raise MisfitError
        items = tuple([item(each, home) for each in value])
        if demand is not None:
            demand(value)
        return items if make is None else make(items)

    return list_of


def _map(shape: MapOf[Any], *, checked: bool) -> Reader:
    entry = reader(shape.value, checked=checked)
    demand = _demand(shape.rule, checked=checked)

    def map_of(value: object, home: str) -> dict[str, object]:
        if not isinstance(value, dict):
            raise MisfitError
        entries = dict(value)
        for key, each in value.items():
            entries[key] = entry(each, home)
        if demand is not None:
            demand(value)
        return entries

    return map_of


def _record(shape: Record[Any], *, checked: bool) -> Reader:
    simple: list[tuple[str, str, Reader]] = []
    others: list[_Adder] = []
    for key, of in shape.fields.items():
        into, is_missed = parameter(key, of), _is_missed(of) if checked else None
        read = reader(of.shape, checked=checked)
        if into is None or is_missed or of.when or of.blank or of.home:
            others.append(_field_reader(key, into, read, is_missed, of))
        else:
            simple.append((key, into, read))
    demands = [demand for rule in shape.rules if (demand := _demand(rule, checked=checked)) is not None]
    make = shape.make

    def record(value: object, home: str, arguments: dict[str, Any] | None = None) -> object:
        if not isinstance(value, dict):
            raise MisfitError
        if arguments is None:
            arguments = {}
        for key, name, read in simple:
            entry = value.get(key)
            if entry is not None:
                arguments[name] = read(entry, home)
        for add in others:
            add(value, home, arguments)
        for demand in demands:
            demand(value)
        return arguments if make is None else make(**arguments)

    return record


def _field_reader(key: str, into: str | None, read: Reader, is_missed: Condition | None, of: Field[Any]) -> _Adder:
    """Return a function that adds the value of a field to the arguments."""
    when, blank, is_home = of.when, of.blank, of.home

    def add(entries: Mapping[str, object], home: str, arguments: dict[str, Any]) -> None:
        entry = entries.get(key)
        if entry is None:
            if is_missed is not None and is_missed(entries):
                raise MisfitError
        elif when is None or when(entries):
            if into is None:
                read(entry, home, arguments)
                return
            made = read(entry, home)
            if entry or not blank:
                arguments[into] = made
                return
        if is_home and into is not None:
            arguments[into] = home

    return add


def _is_missed(of: Field[Any]) -> Condition | None:
    """Return the condition under which a field is required, given the fields beside it; None if it never is."""
    needed, when = of.needed, of.when
    if of.required or (of.implied and not _fits_empty(of.shape)):
        return when or (lambda _: True)
    return needed if when is None or needed is None else lambda entries: needed(entries) and when(entries)


def _fits_empty(shape: Shape[Any]) -> bool:
    try:
        reader(shape)({}, "")
    except MisfitError:
        return False
    return True
