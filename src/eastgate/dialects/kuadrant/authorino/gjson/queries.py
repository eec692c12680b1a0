"""Tests whether an element of an array matches a query."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeVar

from eastgate.dialects.kuadrant.authorino.gjson.bounds import Budget
from eastgate.dialects.kuadrant.authorino.gjson.jsontext import to_float
from eastgate.dialects.kuadrant.authorino.gjson.paths import Query
from eastgate.dialects.kuadrant.authorino.gjson.values import JsonKind, Value

# Wildcard patterns of keys and of the `%` operator: `*` any characters, `?` any one, a backslash escapes.


_ANY_ONE: Final = ""
"""The `?` in a list of pattern characters. It equals no character."""
_ANY_RUN: Final = "**"
"""The `*` in a list of pattern characters."""


def glob_matches(text: str, pattern: str, budget: Budget) -> bool:
    """Return whether the pattern matches the whole text.

    Only the last `*` is ever extended. That is enough: if earlier stars match as little as possible, the most text
    remains for the rest. So the time is at most length times length, and each retry costs budget.
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
    """Return the parts of a pattern; None if it can match nothing: it ends with a backslash that follows no `*`."""
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


_Comparable = TypeVar("_Comparable", str, float)

TILDES: Final = ("~true", "~false")


def query_matches(query: Query, value: Value, budget: Budget) -> bool:
    """Return whether the value at the query's path satisfies the comparison.

    Without a comparison, the value must exist.
    """
    if query.operand.startswith("~"):
        return query.operator == "" or _boolean(is_true(value), query.operator, query.operand[1:])
    if not value.exists:
        return False
    if query.operator == "":
        return True
    match value.kind:
        case JsonKind.STRING:
            return _string(value.string, query, budget)
        case JsonKind.NUMBER:
            return _ordered(value.number, query.operator, to_float(query.operand))
        case JsonKind.TRUE | JsonKind.FALSE:
            return _boolean(value.kind is JsonKind.TRUE, query.operator, query.operand)
    return False


def is_true(value: Value) -> bool:
    """Return the truth of a value after `~`, or of a boolean argument of a modifier."""
    match value.kind:
        case JsonKind.TRUE:
            return True
        case JsonKind.STRING:
            return value.string.lower() in ("1", "t", "true")
        case JsonKind.NUMBER:
            return value.number != 0
    return False


def _string(text: str, query: Query, budget: Budget) -> bool:
    match query.operator:
        case "%":
            return glob_matches(text, query.operand, budget)
        case "!%":
            return not glob_matches(text, query.operand, budget)
    return _ordered(text, query.operator, query.operand)


def _ordered(value: _Comparable, operation: str, operand: _Comparable) -> bool:
    match operation:
        case "=":
            return value == operand
        case "!=":
            return value != operand
        case "<":
            return value < operand
        case "<=":
            return value <= operand
        case ">":
            return value > operand
        case ">=":
            return value >= operand
    return False


def _boolean(value: bool, operation: str, operand: str) -> bool:
    """Compare with a boolean: true is greater than false. No other value is comparable with a boolean."""
    match operation:
        case "=":
            return operand == ("true" if value else "false")
        case "!=":
            return operand != ("true" if value else "false")
        case ">":
            return value and operand == "false"
        case "<":
            return not value and operand == "true"
        case ">=":
            return value
        case "<=":
            return not value
    return False
