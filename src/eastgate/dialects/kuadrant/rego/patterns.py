"""Tests of the patterns of `=` and `:=`."""

from __future__ import annotations

from eastgate.dialects.kuadrant.rego.syntax import Array, ObjectOf, Scalar, Term, Var, variables


def is_target(term: Term) -> bool:
    """Return whether `:=` can assign to a term: it consists of variables, and has nothing to compare."""
    match term:
        case Var():
            return True
        case Array(items):
            return all(map(is_target, items))
        case ObjectOf(pairs):
            return all(isinstance(key, Scalar) and is_target(value) for key, value in pairs)
    return False


def never_equal(left: Term, right: Term) -> bool:
    """Return whether two literal collections have different sizes or keys, so that they are never equal."""
    match left, right:
        case Array(mine), Array(others):
            return len(mine) != len(others)
        case ObjectOf(mine), ObjectOf(others):
            keys = [{key for key, _ in pairs} for pairs in (mine, others)]
            return all(isinstance(key, Scalar) for each in keys for key in each) and keys[0] != keys[1]
        case (Array(), ObjectOf()) | (ObjectOf(), Array()):
            return True
    return False


def is_pattern(term: Term) -> bool:
    """Return whether a term is a variable, or an array or object that can be a pattern."""
    match term:
        case Var() | Scalar():
            return True
        case Array(items):
            return all(is_pattern(part) or not variables(part) for part in items)
        case ObjectOf(pairs):
            return all(not variables(key) and (is_pattern(part) or not variables(part)) for key, part in pairs)
    return False
