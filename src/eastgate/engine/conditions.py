"""Predicates as functions on requests. A function that reads an unknown attribute raises KeyError."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eastgate.ir import And, Computed, Is, Not, OneOf, Or, Predicate, Request

Condition = Callable[[Request], bool]


def compile_condition(predicate: Predicate) -> Condition:
    """Compile a predicate to a function that returns whether the predicate holds."""
    match predicate:
        case Is():
            return _compile_atom(predicate)
        case Computed():
            return _compile_computed(predicate)
        case Not(part):
            condition = compile_condition(part)
            return lambda request: not condition(request)
        case And(parts):
            return _compile_parts(parts, decisive=False)
        case Or(parts):
            return _compile_parts(parts, decisive=True)


def _compile_atom(atom: Is) -> Condition:
    attribute, matcher = atom.attribute, atom.matcher
    if attribute.is_repeatable:
        return lambda request: atom.accepts(request.values[attribute])
    if isinstance(matcher, OneOf):
        values = matcher.values  # None is never among them, so an absent attribute needs no test
        return lambda request: request.values[attribute] in values
    contains = matcher.contains

    def holds(request: Request) -> bool:
        value = request.values[attribute]
        return isinstance(value, str | int) and contains(value)

    return holds


def _compile_computed(computed: Computed) -> Condition:
    def holds(request: Request) -> bool:
        values = request.values
        for attribute in computed.attributes:
            values[attribute]  # raises KeyError for an unknown attribute
        return computed.holds(values)

    return holds


def _compile_parts(parts: Sequence[Predicate], *, decisive: bool) -> Condition:
    """Compile an And (decisive False) or an Or (decisive True)."""
    conditions = tuple(compile_condition(part) for part in parts)
    if len(conditions) == 1:
        return conditions[0]
    if len(conditions) == 2:
        first, second = conditions
        if decisive:
            return lambda request: first(request) or second(request)
        return lambda request: first(request) and second(request)

    def holds(request: Request) -> bool:
        for condition in conditions:
            if condition(request) is decisive:
                return decisive
        return not decisive

    return holds
