"""The parts of values: keys and entries, how many there are, and one of them replaced."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.kuadrant.rego.values import EMPTY_OBJECT, Object, Set, Value


def weight(value: Value, most: int) -> int:
    """Count the parts of a value, no further than `most`."""
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
    """Yield the value of a key, if there is one."""
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
    """Return the value with another one at a path, where objects are created as needed."""
    if not path:
        return new
    before = value if isinstance(value, Object) else EMPTY_OBJECT
    entry = before.get(path[0])
    below = replace_at(None if entry is None else entry[0], path[1:], new)
    return Object((*before.items(), (path[0], below)))
