"""The modifiers of gjson itself: `@reverse`, `@keys` and so on.

Each takes a value and the text of its argument, and gives a value or JSON text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from eastgate.dialects.kuadrant.authorino.gjson.authorino import AUTHORINO
from eastgate.dialects.kuadrant.authorino.gjson.bounds import Budget, Pieces
from eastgate.dialects.kuadrant.authorino.gjson.jsontext import is_json, quoted, without_spaces
from eastgate.dialects.kuadrant.authorino.gjson.pretty import pretty
from eastgate.dialects.kuadrant.authorino.gjson.queries import is_true
from eastgate.dialects.kuadrant.authorino.gjson.textvalue import TextValue, missing_value, parse_value
from eastgate.dialects.kuadrant.authorino.gjson.values import JsonKind, Value

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
    """Dissolve arrays in the array: one level of them, or with {"deep":true} all."""
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
    """Merge the objects of an array. Of equal keys the last value counts, or with {"preserve":true} all are kept."""
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
    """Return a yes or no from a modifier's argument; the last one of that name counts."""
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
