"""Wildcard patterns of keys and of the `%` operator: `*` any characters, `?` any one, a backslash escapes."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from eastgate.dialects.kuadrant.authorino.gjson.bounds import Budget

_ANY_ONE: Final = ""
"""Stands for `?` among the characters of a pattern; no character equals it."""
_ANY_RUN: Final = "**"
"""Stands for `*`."""


def glob_matches(text: str, pattern: str, budget: Budget) -> bool:
    """Return whether the pattern covers the whole text.

    Only the last `*` is ever reconsidered, which suffices: an earlier one that matched as little as possible leaves the
    most to the rest. So the time is at most length times length, and each retry is paid for.
    """
    tokens = _tokens(pattern)
    if tokens is None:
        return False
    at, token, star, resume = 0, 0, -1, 0
    while at < len(text):
        if token < len(tokens) and tokens[token] == _ANY_RUN:
            star, resume = token, at
            token += 1
        elif token < len(tokens) and (tokens[token] == _ANY_ONE or tokens[token] == text[at]):
            at += 1
            token += 1
        elif star >= 0:
            budget.spend(token - star)
            resume += 1
            at, token = resume, star + 1
        else:
            return False
    return all(left == _ANY_RUN for left in tokens[token:])


@lru_cache(maxsize=256)
def _tokens(pattern: str) -> tuple[str, ...] | None:
    """Return the pattern's parts; None where it matches nothing: it ends with a backslash that follows no `*`."""
    tokens: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "*":
            if not tokens or tokens[-1] != _ANY_RUN:
                tokens.append(_ANY_RUN)
        elif character == "?":
            tokens.append(_ANY_ONE)
        elif character == "\\":
            escaped = next(characters, None)
            if escaped is None and _ANY_RUN not in tokens:
                return None
            tokens.append(escaped or character)
        else:
            tokens.append(character)
    return tuple(tokens)
