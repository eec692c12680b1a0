"""Tests whether an element of an array matches a query."""

from __future__ import annotations

from typing import Final, TypeVar

from eastgate.dialects.kuadrant.authorino.gjson.bounds import Budget
from eastgate.dialects.kuadrant.authorino.gjson.globs import glob_matches
from eastgate.dialects.kuadrant.authorino.gjson.numbers import to_float
from eastgate.dialects.kuadrant.authorino.gjson.paths import Query
from eastgate.dialects.kuadrant.authorino.gjson.values import JsonKind, Value

_Comparable = TypeVar("_Comparable", str, float)

TILDES: Final = ("~true", "~false")


def query_matches(query: Query, value: Value, budget: Budget) -> bool:
    """Return whether the value at the query's path compares as asked. Without a comparison it only has to exist."""
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
    """Return the truth of a value: of one after `~`, and of the argument of a modifier that asks yes or no."""
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
    """Compare with a boolean: true is more than false, and nothing else is comparable with either."""
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
