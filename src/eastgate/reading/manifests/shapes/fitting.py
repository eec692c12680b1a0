"""A quick check whether plain data fits a shape: no positions, no findings, a yes or a no.

It is asked of every object that is not a policy, ten thousands of Pods among them, nearly all of which are in order.
A null is as good as absent, as it is to Kubernetes. Who needs to know what is wrong looks a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from eastgate.reading.manifests.shapes.demands import Demand
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

Fits: TypeAlias = Callable[[object], bool]
_Holds: TypeAlias = Callable[[Any], bool]
_LONGEST_NAME: Final = 256  # characters; a longer text is not kept


def fits(shape: Shape[Any]) -> Fits:
    """Return a function that says whether data fits a shape, whose rules must all be demands."""
    match shape:
        case Anything():
            return lambda _: True
        case Text():
            return _text(shape)
        case Whole():
            return _whole(shape)
        case Choice():
            options = frozenset(shape.options)
            return lambda value: isinstance(value, str) and value in options
        case Flag():
            return lambda value: isinstance(value, bool)
        case ListOf():
            item, listed = fits(shape.item), _holds(shape.rule)
            return lambda value: isinstance(value, list) and all(map(item, value)) and (listed is None or listed(value))
        case MapOf():
            return _map(shape)
        case Record():
            return _record(shape)


def _holds(rule: object) -> _Holds | None:
    if rule is None:
        return None
    if not isinstance(rule, Demand):
        raise TypeError(f"{rule} needs positions")
    problems = rule.problems
    return lambda value: next(iter(problems(value)), None) is None


def _text(shape: Text[Any]) -> Fits:
    holds = _holds(shape.rule)
    if holds is None:
        return _is_text
    remembered = lru_cache(maxsize=4096)(holds)  # many objects hold the same few names
    return lambda value: isinstance(value, str) and (remembered if len(value) <= _LONGEST_NAME else holds)(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _whole(shape: Whole) -> Fits:
    lowest, highest, or_name = shape.minimum, shape.maximum, shape.or_name

    def whole(value: object) -> bool:
        if isinstance(value, int):
            return lowest <= value <= highest and not isinstance(value, bool)
        return or_name and isinstance(value, str) and not value.isdigit()

    return whole


def _map(shape: MapOf[Any]) -> Fits:
    entry, holds = fits(shape.value), _holds(shape.rule)

    def map_of(value: object) -> bool:
        return isinstance(value, dict) and all(map(entry, value.values())) and (holds is None or holds(value))

    return map_of


def _record(shape: Record[Any]) -> Fits:
    fields = [(name, fits(of.shape), of.when, _may_be_absent(of)) for name, of in shape.fields.items()]
    rules = [holds for rule in shape.rules if (holds := _holds(rule)) is not None]

    def record(value: object) -> bool:
        if not isinstance(value, dict):
            return False
        entries: Mapping[str, object] = value
        for name, fit, when, may_be_absent in fields:
            entry = entries.get(name)
            if entry is None:
                if may_be_absent is not None and not may_be_absent(entries) and (when is None or when(entries)):
                    return False
            elif not fit(entry) and (when is None or when(entries)):
                return False
        return all(holds(entries) for holds in rules) if rules else True

    return record


def _may_be_absent(of: Field[Any]) -> Callable[[Mapping[str, object]], bool] | None:
    """Return whether a field may be absent, depending on those beside it; None where it always may."""
    if of.required or (of.implied and not fits(of.shape)({})):
        return lambda _: False
    needed = of.needed
    return None if needed is None else lambda entries: not needed(entries)
