"""A value with its position.

Policies are read from trees of these, never from plain dictionaries, so that every rule and every diagnostic can point
at a line. Objects that are not policies (pods, services) are read as plain data, because there are many of them and
nobody asks for the column of a pod's label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eastgate.basics.diagnostics.spans import SourceText, Span

Scalar = str | int | float | bool | None
Plain = Scalar | list["Plain"] | dict[str, "Plain"]

_KINDS: Final = {
    dict: "a mapping",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
}


class Node:
    """A mapping, a list or a scalar, with its span; a mapping also knows the spans of its keys."""

    __slots__ = ("column", "end_column", "end_line", "keys", "line", "source", "value")

    def __init__(
        self,
        value: dict[str, Node] | list[Node] | Scalar,
        source: SourceText,
        line: int,
        column: int,
        end_line: int,
        end_column: int,
        keys: dict[str, Node] | None = None,
    ) -> None:
        self.value = value
        self.source = source
        self.line = line
        self.column = column
        self.end_line = end_line
        self.end_column = end_column
        self.keys = _NO_KEYS if keys is None else keys

    def __repr__(self) -> str:
        return f"Node({self.plain()!r} at {self.span})"

    @property
    def span(self) -> Span:
        """Return the span of the value. An empty value (`key:`) has that of its key."""
        return Span(self.source, self.line, self.column, self.end_line, self.end_column)

    @property
    def kind(self) -> str:
        """Return the sort of value, as a person would say it."""
        return "null" if self.value is None else _KINDS[type(self.value)]

    @property
    def text(self) -> str:
        """Return the value of a node that is known to be a string."""
        assert isinstance(self.value, str)  # noqa: S101 - the schema has checked it
        return self.value

    @property
    def number(self) -> int:
        """Return the value of a node that is known to be a whole number."""
        assert isinstance(self.value, int)  # noqa: S101 - the schema has checked it
        return self.value

    def get(self, key: str) -> Node | None:
        """Return the value under a key; None where the key is absent or this is no mapping."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def __getitem__(self, key: str) -> Node:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def __iter__(self) -> Iterator[Node]:
        """Return the items of a list; nothing for any other value."""
        return iter(self.value) if isinstance(self.value, list) else iter(())

    def items(self) -> Iterator[tuple[str, Node]]:
        """Return the entries of a mapping; nothing for any other value."""
        return iter(self.value.items()) if isinstance(self.value, dict) else iter(())

    def key_span(self, key: str) -> Span:
        """Return the span of a key of this mapping."""
        return self.keys[key].span if key in self.keys else self.span

    def nearest(self, *path: str | int) -> Node:
        """Return the value at a path of keys and indices; where it ends early, the last value on the way."""
        node = self
        for step in path:
            match node.value, step:
                case dict() as entries, str() if step in entries:
                    node = entries[step]
                case list() as items, int() if 0 <= step < len(items):
                    node = items[step]
                case _:
                    return node
        return node

    def plain(self) -> Plain:
        """Return the value without positions."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


_NO_KEYS: Final[dict[str, Node]] = {}  # one for all values that are no mappings
