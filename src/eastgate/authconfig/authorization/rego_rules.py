"""The rules of a Rego module: heads and bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eastgate.authconfig.authorization.rego_tokens import (
    KEYWORDS,
    Group,
    Item,
    RegoSyntax,
    Word,
    index_of,
    is_word,
    split,
    waits,
)

__all__ = ["Rule", "imported", "rules", "statements"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One head with one body."""

    name: str
    arguments: tuple[Item, ...]
    head: tuple[Item, ...]
    body: tuple[Item, ...]


def statements(items: tuple[Item, ...]) -> list[tuple[Item, ...]]:
    """Lines, joined where one goes on: with `else`, or with what a sign at the end of a line waits for."""
    joined: list[tuple[Item, ...]] = []
    for line in split(items, ("\n", ";")):
        open_ = bool(joined) and not is_word(joined[-1][0], "import")
        goes_on = open_ and (is_word(line[0], "else") or waits(joined[-1][-1]) or _is_body(line[0]))
        if goes_on:
            joined[-1] += line
        else:
            joined.append(line)
    return joined


def _is_body(item: Item) -> bool:
    return isinstance(item, Group)


def rules(statement: tuple[Item, ...]) -> Iterator[Rule]:
    """The rules that a statement is: one for each of its bodies, none for an import."""
    first = statement[0]
    if is_word(first, "import"):
        return
    if is_word(first, "default"):
        if len(statement) > 1 and is_word(statement[1], "allow"):
            raise RegoSyntax("allow has the default false already; leave out `default allow`")
        statement = statement[1:]
    named = statement[0] if statement else first
    if not isinstance(named, Word) or named.kind != "name" or named.text in (*KEYWORDS, "package"):
        raise RegoSyntax("a rule begins with its name")
    name, rest = named.text, statement[1:]
    arguments: tuple[Item, ...] = ()
    if rest and isinstance(rest[0], Group) and rest[0].open == "(":
        arguments, rest = rest[0].items, rest[1:]
    for head, body in _branches(rest):
        yield Rule(name, arguments, head, body)


def _branches(items: tuple[Item, ...]) -> Iterator[tuple[tuple[Item, ...], tuple[Item, ...]]]:
    """Heads and bodies: `head { body } { body } else = head { body }`, or `head if expression`."""
    head: list[Item] = []
    waiting = any_body = False
    for at, item in enumerate(items):
        if isinstance(item, Group) and item.open == "{" and not waiting:
            yield tuple(head), item.items
            any_body = True
            continue
        if is_word(item, "if"):
            if not _is_block(items[at + 1 :]):
                yield tuple(head), _without_else(items[at + 1 :])
                return
            waiting = False
            continue
        if is_word(item, "else"):
            head = []
        else:
            head.append(item)
        waiting = waits(item) and not is_word(item, "else")
    if not any_body:
        yield tuple(head), ()


def _is_block(items: tuple[Item, ...]) -> bool:
    """Whether conditions stand in braces, and nothing else but perhaps `else` follows them."""
    braces = bool(items) and isinstance(items[0], Group) and items[0].open == "{"
    return braces and (len(items) == 1 or is_word(items[1], "else"))


def _without_else(items: tuple[Item, ...]) -> tuple[Item, ...]:
    if index_of(items, "else") is not None:
        raise RegoSyntax("write the conditions before `else` in braces")
    return items


def imported(statement: tuple[Item, ...]) -> Iterator[str]:
    """The name that an import makes known: its last word, alias or not. Keywords of Rego are not names."""
    words = [item.text for item in statement[1:] if isinstance(item, Word) and item.kind in ("name", "text")]
    if words and words[0] in ("input", "data"):
        yield words[-1].strip('"')
