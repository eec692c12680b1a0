"""Built-in functions of arrays, sets, objects, and types."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from typing import Final

from eastgate.dialects.kuadrant.rego.functions.registry import Bounded, Failed, function, integer, type_of
from eastgate.dialects.kuadrant.rego.values import Object, Set, Value, compare, identity

Items = tuple[Value, ...]

_MAX_COMPARED_PARTS: Final = 100_000


def walked(path: Items, value: Value) -> Iterator[Value]:
    """Yield every value inside a value, and first the value itself, each with its path: `[path, value]`."""
    yield (path, value)
    match value:
        case tuple():
            for at, item in enumerate(value):
                yield from walked((*path, at), item)
        case Set():
            for item in value:
                yield from walked((*path, item), item)
        case Object():
            for key, item in value.items():
                yield from walked((*path, key), item)


@function("internal.member_2", "any", "any", result="boolean")
def member(item: Value, values: Value) -> Value:
    match values:
        case Set():
            return item in values
        case tuple():
            return any(compare(item, other) == 0 for other in values)
        case Object():
            return any(compare(item, other) == 0 for _, other in values.items())
    return False


@function("all", "array|set", result="boolean")
def all_(values: Items | Set) -> Value:
    return all(value is True for value in values)


@function("any", "array|set", result="boolean")
def any_(values: Items | Set) -> Value:
    return any(value is True for value in values)


@function("array.concat", "array", "array", result="array")
def array_concat(first: Items, second: Items) -> Value:
    return first + second


@function("array.reverse", "array", result="array")
def array_reverse(values: Items) -> Value:
    return values[::-1]


@function("array.slice", "array", "number", "number", result="array")
def array_slice(values: Items, start: int | Decimal, stop: int | Decimal) -> Value:
    return values[max(integer(start), 0) : max(integer(stop), 0)]


@function("and", "set", "set", result="set")
def and_(left: Set, right: Set) -> Value:
    return Set(item for item in left if item in right)


@function("or", "set", "set", result="set")
def or_(left: Set, right: Set) -> Value:
    return Set((*left, *right))


@function("set_diff", "set", "set", result="set")
def set_diff(left: Set, right: Set) -> Value:
    return Set(item for item in left if item not in right)


def _sets(values: Set) -> list[Set]:
    sets = [item for item in values if isinstance(item, Set)]
    if len(sets) != len(values):
        raise Failed
    return sets


@function("union", "set", result="set")
def union(values: Set) -> Value:
    return Set(item for items in _sets(values) for item in items)


@function("intersection", "set", result="set")
def intersection(values: Set) -> Value:
    sets = _sets(values)
    return Set(item for item in sets[0] if all(item in items for items in sets)) if sets else Set(())


@function("object.get", "object", "any", "any")
def object_get(value: Object, key: Value, default: Value) -> Value:
    """Return the value of a key or of a path of keys, or the default."""
    if not isinstance(key, tuple):
        entry = value.get(key)
        return default if entry is None else entry[0]
    current: Value = value
    for part in key:
        step = _step(current, part)
        if step is None:
            return default
        current = step[0]
    return current


def _step(value: Value, key: Value) -> tuple[Value] | None:
    match value:
        case Object():
            return value.get(key)
        case Set():
            return (key,) if key in value else None
        case tuple() if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(value):
            return (value[key],)
    return None


@function("object.keys", "object", result="set")
def object_keys(value: Object) -> Value:
    return Set(key for key, _ in value.items())


def _keys(keys: Items | Set | Object) -> Set:
    return Set(key for key, _ in keys.items()) if isinstance(keys, Object) else Set(keys)


@function("object.remove", "object", "array|set|object", result="object")
def object_remove(value: Object, keys: Items | Set | Object) -> Value:
    gone = _keys(keys)
    return Object((key, item) for key, item in value.items() if key not in gone)


@function("object.filter", "object", "array|set|object", result="object")
def object_filter(value: Object, keys: Items | Set | Object) -> Value:
    kept = _keys(keys)
    return Object((key, item) for key, item in value.items() if key in kept)


@function("object.union", "object", "object", result="object")
def object_union(left: Object, right: Object) -> Object:
    """Merge both at all levels. If both have a value that is no object, the right one is used."""
    pairs = list(left.items())
    for key, item in right.items():
        entry = left.get(key)
        both = isinstance(item, Object) and entry is not None and isinstance(entry[0], Object)
        pairs.append((key, object_union(entry[0], item) if both else item))  # type: ignore[index]
    return Object(pairs)


@function("object.union_n", "array", result="object")
def object_union_n(values: Items) -> Value:
    """Merge all of them. The last value of a key is used."""
    objects = [value for value in values if isinstance(value, Object)]
    if len(objects) != len(values):
        raise Failed
    return reduce(object_union, objects, Object(()))


@function("object.subset", "object|set|array", "object|set|array", result="boolean")
def object_subset(whole: Value, part: Value) -> Value:
    """Return whether the first contains all of the second. An array must be contained in one piece."""
    match whole, part:
        case Object(), Object():
            return _object_has(whole, part)
        case Set(), Set():
            return all(item in whole for item in part)
        case tuple(), tuple():
            if len(whole) * len(part) > _MAX_COMPARED_PARTS:
                raise Bounded("it compares collections that are too large")
            return any(
                all(compare(a, b) == 0 for a, b in zip(whole[at:], part, strict=False))
                for at in range(len(whole) - len(part) + 1)
            )
        case tuple(), Set():
            return bool(whole) and all(item in Set(whole) for item in part)
    raise Failed


def _object_has(whole: Object, part: Object) -> bool:
    for key, item in part.items():
        entry = whole.get(key)
        if entry is None:
            return False
        match entry[0], item:
            case Object(), Object():
                if not _object_has(entry[0], item):
                    return False
            case (Set(), Set()) | (tuple(), tuple()) | (tuple(), Set()):
                if not object_subset(entry[0], item):
                    return False
            case _:
                if compare(entry[0], item):
                    return False
    return True


@function("graph.reachable", "object", "array|set", result="set")
def graph_reachable(graph: Object, initial: Items | Set) -> Value:
    """Return all keys that can be reached along edges from the initial ones."""
    left, reached = list(initial), dict[object, Value]()
    while left:
        key = left.pop()
        edges = graph.get(key)
        if edges is None or identity(key) in reached:
            continue
        reached[identity(key)] = key
        if isinstance(edges[0], tuple | Set):
            left += edges[0]
    return Set(reached.values())


@function("type_name", "any", result="string")
def type_name(value: Value) -> Value:
    return type_of(value)


def _declare_tests() -> None:
    for name in ("array", "boolean", "null", "number", "object", "set", "string"):

        def is_it(value: Value, name: str = name) -> Value:
            return type_of(value) == name

        function(f"is_{name}", "any", result="boolean")(is_it)

    for name in ("boolean", "null", "object", "string"):
        function(f"cast_{name}", name)(lambda value: value)


_declare_tests()


@function("cast_array", "array|set", result="array")
def cast_array(values: Items | Set) -> Value:
    return tuple(values)


@function("cast_set", "array|set", result="set")
def cast_set(values: Items | Set) -> Value:
    return Set(values)
