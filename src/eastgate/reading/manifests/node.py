"""A value with its position.

Policies are always read into trees of nodes, never into plain dictionaries, so that every rule and every diagnostic can
point at a line. Other objects (pods, services) are read as plain data, because there are many of them and no diagnostic
needs their positions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.basics.regexes import regex

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
        """Return the span of the value. An empty value (`key:`) has the span of its key."""
        return self.source.place(self.line, self.column, self.end_line, self.end_column)

    @property
    def kind(self) -> str:
        """Return the type of the value, as a word for messages."""
        return "null" if self.value is None else _KINDS[type(self.value)]

    @property
    def text(self) -> str:
        """Return the value of a string node."""
        assert isinstance(self.value, str)  # noqa: S101 - the schema has checked it
        return self.value

    @property
    def number(self) -> int:
        """Return the value of an integer node."""
        assert isinstance(self.value, int)  # noqa: S101 - the schema has checked it
        return self.value

    def get(self, key: str) -> Node | None:
        """Return the value of a key; None if the key is absent or the node is not a mapping."""
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
        """Return the value at a path of keys and indices. If the path ends early, return the last value on it."""
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


_NO_KEYS: Final[dict[str, Node]] = {}  # shared by all values that are not mappings


# Removes explicit nulls, because an API server treats a null field as an absent one.


def drop_nulls(node: Node, keeps: Callable[[str, str], bool], opaque: frozenset[str] = frozenset()) -> Node:
    """Return the node without fields that are null. Its span and the entries of lists stay.

    `keeps` is called for each null, with the key of its mapping and its own key. Values of `opaque` keys are not
    changed.
    """

    def within(node: Node, key: str) -> Node:
        match node.value:
            case dict() as entries if key not in opaque:
                return _like(
                    node,
                    {
                        name: within(entry, name)
                        for name, entry in entries.items()
                        if entry.value is not None or keeps(key, name)
                    },
                )
            case list() as items if key not in opaque:
                return _like(node, [within(item, "") for item in items])
        return node

    return within(node, "")


def _like(node: Node, value: dict[str, Node] | list[Node]) -> Node:
    return Node(value, node.source, node.line, node.column, node.end_line, node.end_column, node.keys)


# Resolves unquoted YAML scalars as kubectl does. Readers differ here: `on`, `010`, `1e3` and `1_000` are different
# values to YAML 1.1, YAML 1.2 and PyYAML. If one reader takes a policy's value for a string and another for a number,
# that is a security hole. kubectl reads YAML 1.1 with a few changes of go-yaml, which are implemented here. `y` and `n`
# are booleans like `yes` and `no`, so they are errors in the place of a name or a label. Dates and base 60 numbers stay
# strings.


class NoNumberError(Exception):
    """Error: the text is a number that has no form in JSON, and so not in Kubernetes."""


def _cases(*words: str) -> list[str]:
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


NULLS = frozenset(["", "~", *_cases("null")])
TRUE = frozenset([*_cases("true", "yes", "on"), "y", "Y"])
FALSE = frozenset([*_cases("false", "no", "off"), "n", "N"])
WORDS: dict[str, bool | None] = {
    **dict.fromkeys(NULLS, None),
    **dict.fromkeys(TRUE, True),
    **dict.fromkeys(FALSE, False),
}

_INT = regex(r"[-+]?(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = regex(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_SEPARATED = regex(r"(?:[^_]|(?<=[0-9])_(?=[0-9]))*+", re.ASCII)
_NOT_FINITE = frozenset(
    [sign + form for sign in ("", "+", "-") for form in (".inf", ".Inf", ".INF")] + [".nan", ".NaN", ".NAN"]
)
_BASES = (16, 2, 8, 10)
_DECIMAL = len(_BASES)
MAX_DIGITS = 4300  # Python refuses to convert longer texts, because that takes quadratic time


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar without a tag."""
    if text in WORDS:
        return WORDS[text]
    # "9" is the last character that a number can start with. Nearly all strings start with a later one.
    return _number(text) if text[0] <= "9" else text


def _number(text: str) -> Scalar:
    if text[0] not in "0123456789+-.":
        return text
    plain = text.replace("_", "") if text[0] != "." or _SEPARATED.fullmatch(text) else text
    whole = _to_int(plain)
    if whole is not None:
        return whole
    value = _to_float(plain)
    return text if value is None else value


def _to_int(text: str) -> int | None:
    match = _INT.fullmatch(text)
    if match is None or match.lastindex is None:
        return None
    digits = match.group(match.lastindex)
    if len(digits) > MAX_DIGITS:
        raise NoNumberError
    value = int(digits, _BASES[match.lastindex - 1])
    value = -value if text[0] == "-" else value
    if match.lastindex != _DECIMAL and not -(1 << 63) <= value < 1 << 64:
        raise NoNumberError  # kubectl reads it as a string, or as a decimal number
    return value


def _to_float(text: str) -> float | None:
    if text in _NOT_FINITE:
        raise NoNumberError
    if _FLOAT.fullmatch(text) is None:
        return None
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NoNumberError
    return value


def _tagged_int(text: str) -> int | None:
    return None if text.startswith("_") else _to_int(text.replace("_", ""))


def _tagged_float(text: str) -> float | None:
    plain = text if text.startswith("_") else text.replace("_", "")
    value = _to_float(plain)
    if value is not None:
        return value
    whole = _to_int(plain)
    try:
        return None if whole is None else float(whole)
    except OverflowError:
        raise NoNumberError from None


def _tagged_bool(text: str) -> bool | None:
    return WORDS.get(text)


CONVERT = {"int": _tagged_int, "float": _tagged_float, "bool": _tagged_bool}
"""Readers of scalars by their explicit tag. Each returns None if a text does not fit the tag."""
