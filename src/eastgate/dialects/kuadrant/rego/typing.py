"""Checks types that are known before a module runs. OPA refuses comparisons and results that can never fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from eastgate.dialects.kuadrant.rego.builtins import ACCEPTED, RESULTS
from eastgate.dialects.kuadrant.rego.syntax import (
    RULE,
    Array,
    Call,
    Collect,
    ObjectOf,
    Ref,
    RegoRule,
    Scalar,
    SetOf,
    Term,
    Var,
)

Types = Mapping[str, str | None]

_COMPARED = ("equal", "neq", "lt", "lte", "gt", "gte")
_FLAT = ("null", "boolean", "number", "string")


def rule_type(rules: Iterable[RegoRule]) -> str | None:
    """Return the type of all values of the rules with one name; None if it is unknown or differs."""
    types = {type_ for rule in rules for type_ in _given_types(rule)}
    return types.pop() if len(types) == 1 else None


def _given_types(rule: RegoRule) -> Iterator[str | None]:
    if rule.key is not None:
        yield "set" if rule.is_set else "object"
    else:
        yield None if rule.value is None else _type(rule.value, {})
    if rule.otherwise is not None:
        yield from _given_types(rule.otherwise)


def type_problem(term: Term, rules: Types) -> str | None:
    """Return the type error of a term, or None. `rules`: the types of rules, by their names."""
    if isinstance(term, Ref) and _type(term.head, rules) in _FLAT:
        return f"a {_type(term.head, rules)} has no members"
    if not isinstance(term, Call):
        return None
    by_order = term.name in _COMPARED and term.name != "equal"  # OPA does not refuse these
    types = [_type(argument, {} if by_order else rules) for argument in term.arguments]
    if term.name in _COMPARED and None not in types and types[0] != types[1]:
        return f"a {types[0]} is compared with a {types[1]}, which OPA refuses or decides by the order of types"
    accepted = ACCEPTED.get(term.name, ())
    for at, (given, possible) in enumerate(zip(types, accepted, strict=False), start=1):
        if given is not None and possible is not None and given not in possible:
            return f"argument {at} of {term.name} is a {given}, which it does not take"
    return None


def _type(term: Term, rules: Types) -> str | None:
    """Return the type that a term has for every input; None if it is unknown."""
    match term:
        case Var(name):
            return rules.get(name.removeprefix(RULE)) if name.startswith(RULE) else None
        case Scalar(None):
            return "null"
        case Scalar(bool()):
            return "boolean"
        case Scalar(int() | Decimal()):
            return "number"
        case Scalar():
            return "string"
        case Array():
            return "array"
        case SetOf():
            return "set"
        case ObjectOf():
            return "object"
        case Collect(kind):
            return {"[": "array", "{": "set", ":": "object"}[kind]
        case Call(name):
            return RESULTS.get(name)
    return None
