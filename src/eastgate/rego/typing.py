"""Types that are known before a module runs. OPA refuses to compare or to give what can never fit."""

from __future__ import annotations

from decimal import Decimal

from eastgate.rego.builtins import ACCEPTED, RESULTS
from eastgate.rego.syntax import Array, Call, Collect, ObjectOf, Scalar, SetOf, Term

__all__ = ["type_problem"]

_COMPARED = ("equal", "neq", "lt", "lte", "gt", "gte")


def type_problem(term: Term) -> str | None:
    """What is wrong with the types of a call."""
    if not isinstance(term, Call):
        return None
    types = [_type(argument) for argument in term.arguments]
    if term.name in _COMPARED and None not in types and types[0] != types[1]:
        return f"a {types[0]} is compared with a {types[1]}, which OPA refuses or decides by the order of types"
    accepted = ACCEPTED.get(term.name, ())
    for at, (given, possible) in enumerate(zip(types, accepted, strict=False), start=1):
        if given is not None and possible is not None and given not in possible:
            return f"argument {at} of {term.name} is a {given}, which it does not take"
    return None


def _type(term: Term) -> str | None:
    """The type that a term has whatever the input is; None where that is not known."""
    match term:
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
