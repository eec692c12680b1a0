"""The text of a Rego module as words and brackets: as much of its grammar as the check of its variables needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["KEYWORDS", "Group", "Item", "RegoSyntax", "Word", "index_of", "is_word", "read", "split", "waits"]

MAX_DEPTH: Final = 64
KEYWORDS: Final = frozenset(
    ("not", "some", "every", "in", "if", "else", "contains", "default", "import", "as", "with", "true", "false", "null")
)
_OPERAND_FOLLOWS: Final = frozenset(("in", "if", "else", "contains", "with", "as", "not", "some", "every", "default"))

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r]+|\#[^\n]*)|(?P<newline>\n)|(?P<text>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)
    |(?P<sign>:=|==|!=|<=|>=|[-=<>+*/%&|.,;:])|(?P<open>[(\[{])|(?P<close>[)\]}])""",
    re.VERBOSE | re.ASCII,
)
_PAIRS: Final = {"(": ")", "[": "]", "{": "}"}


class RegoSyntax(Exception):  # noqa: N818 - what is wrong with the module, in words for its author
    """The text is not a module."""


@dataclass(frozen=True, slots=True)
class Word:
    """A name, a sign, a number, a text, or the end of a line (`kind` newline)."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """What stands in a pair of brackets; `touches`: nothing stands between it and the word before."""

    open: str
    items: tuple[Item, ...]
    touches: bool


Item: TypeAlias = Word | Group


def read(module: str) -> tuple[Item, ...]:
    """The items of a module. Ends of lines are kept where they separate: outside brackets and in braces."""
    stack: list[tuple[str, bool, list[Item]]] = [("", False, [])]
    at, spaced = 0, True
    while at < len(module):
        found = _TOKEN.match(module, at)
        if found is None:
            raise RegoSyntax(f"{module[at]!r} cannot stand in a module")
        at = found.end()
        kind, text = str(found.lastgroup), found[0]
        if kind == "open":
            if len(stack) > MAX_DEPTH:
                raise RegoSyntax(f"brackets are nested deeper than {MAX_DEPTH} levels")
            stack.append((text, not spaced, []))
        elif kind == "close":
            opened, touches, items = stack.pop()
            if _PAIRS.get(opened) != text:
                raise RegoSyntax(f"{text!r} closes nothing")
            stack[-1][2].append(Group(opened, tuple(items), touches))
        elif kind == "newline" and stack[-1][0] in ("", "{"):
            stack[-1][2].append(Word("newline", text))
        elif kind not in ("space", "newline"):
            stack[-1][2].append(Word(kind, text))
        spaced = kind in ("space", "newline", "open")
    if len(stack) != 1:
        raise RegoSyntax(f"{stack[-1][0]!r} is not closed")
    return tuple(stack[0][2])


def split(items: tuple[Item, ...], signs: tuple[str, ...]) -> list[tuple[Item, ...]]:
    """The parts between these signs (`\\n`: ends of lines), without empty ones."""
    parts: list[list[Item]] = [[]]
    for item in items:
        if isinstance(item, Word) and item.text in signs and item.kind in ("sign", "newline", "name"):
            parts.append([])
        else:
            parts[-1].append(item)
    return [tuple(part) for part in parts if part]


def waits(item: Item) -> bool:
    """Whether something must follow on the next line."""
    return isinstance(item, Word) and (item.kind == "sign" or item.text in _OPERAND_FOLLOWS)


def is_word(item: Item, text: str) -> bool:
    """Whether it is this name or sign."""
    return isinstance(item, Word) and item.text == text and item.kind in ("name", "sign")


def index_of(items: tuple[Item, ...], text: str) -> int | None:
    """Where this name or sign stands, outside of brackets."""
    return next((at for at, item in enumerate(items) if is_word(item, text)), None)
