"""The values of Rego: JSON, sets, and objects with keys of any type.

null, booleans, texts and arrays are None, bool, str and tuple. A number is an int, or a Decimal if it is no integer.
All values have one order: null, booleans, numbers, texts, arrays, objects, sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cmp_to_key
from typing import Final, TypeAlias, Union

Value: TypeAlias = Union[bool, int, Decimal, str, tuple["Value", ...], "Set", "Object", None]
_Key: TypeAlias = tuple[object, ...]


class Set:
    __slots__ = ("_items", "_sorted", "key")

    def __init__(self, items: Iterable[Value]) -> None:
        self._items = {identity(item): item for item in items}
        self._sorted: tuple[Value, ...] | None = None
        self.key: _Key = ("set", frozenset(self._items))

    def __contains__(self, item: Value) -> bool:
        return identity(item) in self._items

    def __iter__(self) -> Iterator[Value]:
        if self._sorted is None:
            self._sorted = tuple(in_order(self._items.values()))
        return iter(self._sorted)

    def __len__(self) -> int:
        return len(self._items)


class Object:
    __slots__ = ("_items", "_key", "_sorted")

    def __init__(self, items: Iterable[tuple[Value, Value]]) -> None:
        self._items = {identity(key): (key, value) for key, value in items}
        self._sorted: tuple[tuple[Value, Value], ...] | None = None
        self._key: _Key | None = None

    @property
    def key(self) -> _Key:
        """Return the key for comparisons with other objects."""
        if self._key is None:
            self._key = ("object", frozenset((name, identity(value)) for name, (_, value) in self._items.items()))
        return self._key

    def get(self, key: Value) -> tuple[Value] | None:
        """Return the value of a key in a tuple, or None if there is no such key."""
        pair = self._items.get(identity(key))
        return None if pair is None else (pair[1],)

    def items(self) -> tuple[tuple[Value, Value], ...]:
        """Return keys and values, in the order of keys."""
        if self._sorted is None:
            self._sorted = tuple(sorted(self._items.values(), key=cmp_to_key(_compare_keys)))
        return self._sorted

    def __contains__(self, key: Value) -> bool:
        return identity(key) in self._items

    def __len__(self) -> int:
        return len(self._items)


EMPTY_OBJECT: Final = Object(())
_MAX_EXACT_INTEGER: Final = 2**53
_RANKS: Final = {type(None): 0, bool: 1, int: 2, Decimal: 2, str: 3, tuple: 4, Object: 5, Set: 6}


def identity(value: Value) -> _Key:
    """Return a hashable key that is equal only for equal values. In Python, True equals 1."""
    match value:
        case Set() | Object():
            return value.key
        case tuple():
            return ("array", *map(identity, value))
    return (_RANKS[type(value)], value)


def compare(left: Value, right: Value) -> int:
    """Return a number below, equal to or above 0: `left` comes before `right`, is equal, or comes after it."""
    if left is right:
        return 0
    ranks = _RANKS[type(left)], _RANKS[type(right)]
    if ranks[0] != ranks[1]:
        return ranks[0] - ranks[1]
    match left, right:
        case tuple(), tuple():
            return _lexical(left, right)
        case Set(), Set():
            return _lexical(tuple(left), tuple(right))
        case Object(), Object():
            return _lexical(left.items(), right.items())
    if left == right:
        return 0
    return -1 if left < right else 1  # type: ignore[operator]  # both are of one type, which has an order


def _compare_keys(left: tuple[Value, Value], right: tuple[Value, Value]) -> int:
    return compare(left[0], right[0])


def _lexical(left: tuple[Value, ...], right: tuple[Value, ...]) -> int:
    for mine, other in zip(left, right, strict=False):
        if order := compare(mine, other):
            return order
    return len(left) - len(right)


def in_order(values: Iterable[Value]) -> list[Value]:
    """Return the values, sorted."""
    return sorted(values, key=cmp_to_key(compare))


def magnitude(value: int | Decimal) -> int | Decimal:
    """Return the absolute value of a number."""
    return -value if value < 0 else value


def number(value: int | float | Decimal) -> Value:
    """Return a number, as an int if possible."""
    exact = value if isinstance(value, int) else Decimal(repr(value)) if isinstance(value, float) else value
    return int(exact) if exact == int(exact) else exact


def from_json(data: object) -> Value:
    """Return the value for JSON data. Raises ValueError if there is none."""
    match data:
        case None | bool() | str():
            return data
        case int():
            return (
                data if abs(data) <= _MAX_EXACT_INTEGER else number(float(data))
            )  # Authorino reads all numbers as float64
        case float():
            if data != data or data in (float("inf"), float("-inf")):
                raise ValueError("not a number of JSON")
            return number(data)
        case Mapping():
            return Object((str(key), from_json(value)) for key, value in data.items())
        case list() | tuple():
            return tuple(from_json(item) for item in data)
    raise ValueError("not JSON")


def to_json(value: Value) -> object:
    """Convert to JSON data: sets become arrays, and a key that is no text becomes its JSON text."""
    match value:
        case Decimal():
            return float(value)
        case tuple() | Set():
            return [to_json(item) for item in value]
        case Object():
            return {_name(key): to_json(item) for key, item in value.items()}
    return value


def _name(key: Value) -> str:
    if isinstance(key, str):
        return key
    from eastgate.dialects.kuadrant.rego.texts import marshalled

    return marshalled(key)


# Parts of values: keys and entries, their number, and replacements.


def weight(value: Value, most: int) -> int:
    """Count the parts of a value, up to `most`."""
    left, count = [value], 0
    while left and count <= most:
        part = left.pop()
        count += 1
        match part:
            case str():
                count += len(part) >> 6
            case tuple() | Set():
                left += part
            case Object():
                left += [item for pair in part.items() for item in pair]
    return count


def entries_of(value: Value) -> Iterator[tuple[Value, Value]]:
    """Yield keys and values of a collection."""
    match value:
        case tuple():
            yield from enumerate(value)
        case Set():
            yield from ((item, item) for item in value)
        case Object():
            yield from value.items()


def values_at(value: Value, key: Value) -> Iterator[Value]:
    """Yield the value of a key, if it exists."""
    match value:
        case tuple():
            if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(value):
                yield value[key]
        case Set():
            if key in value:
                yield key
        case Object():
            entry = value.get(key)
            if entry is not None:
                yield entry[0]


def replace_at(value: Value, path: tuple[str, ...], new: Value) -> Value:
    """Return the value with another value at a path. Missing objects on the path are created."""
    if not path:
        return new
    before = value if isinstance(value, Object) else EMPTY_OBJECT
    entry = before.get(path[0])
    below = replace_at(None if entry is None else entry[0], path[1:], new)
    return Object((*before.items(), (path[0], below)))
