"""The conditions that guard parts of a scheme, and which of them may err.

Where one errs, Authorino skips what it guards, and Eastgate denies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects.kuadrant.authorino.conditions import regex_problem
from eastgate.dialects.kuadrant.authorino.gates import Guarded
from eastgate.dialects.kuadrant.authorino.model import (
    All,
    AnyOf,
    CelPredicate,
    Condition,
    MissingPatterns,
    Pattern,
    PatternOperator,
    PatternRules,
    Scheme,
)

SingleCondition: TypeAlias = Pattern | CelPredicate | MissingPatterns
"""A condition that has no others in it."""


def erring_guards(scheme: Scheme) -> Iterator[tuple[SingleCondition, str]]:
    """Yield every condition of a `when` that may err, and why."""
    for when in _guards(scheme):
        for condition in leaves(when):
            why = _may_err(condition)
            if why is not None:
                yield condition, why


def sets_apart(scheme: Scheme) -> Iterator[Span]:
    """Yield every reference to a named set of patterns that stands in `any`, where one of its patterns is enough."""
    for condition in all_conditions(scheme):
        yield from _apart(condition)


def all_conditions(scheme: Scheme) -> Iterator[Condition]:
    """Yield the conditions of every `when`, and those that authorization asks for."""
    yield from _guards(scheme)
    for authorization in scheme.authorizations:
        if isinstance(authorization.rule, PatternRules):
            yield authorization.rule.condition


def _apart(condition: Condition) -> Iterator[Span]:
    if isinstance(condition, AnyOf):
        yield from condition.apart
    if isinstance(condition, All | AnyOf):
        for part in condition.parts:
            yield from _apart(part)


def _guards(scheme: Scheme) -> Iterator[Condition]:
    steps: tuple[Guarded, ...] = (*scheme.identities, *scheme.metadata, *scheme.authorizations, *scheme.responses)
    for when in (scheme.when, *(step.when for step in steps)):
        if when is not None:
            yield when


def leaves(condition: Condition) -> Iterator[SingleCondition]:
    """Yield the conditions in a condition that have no others in them."""
    match condition:
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves(part)
        case _:
            yield condition


def _may_err(condition: SingleCondition) -> str | None:
    match condition:
        case Pattern(operator=PatternOperator.MATCHES, value=value) if regex_problem(value):
            return f"`{value}` is not a regular expression"
        case CelPredicate(text):
            return f"`{text}` fails where something that it looks at is missing"
        case MissingPatterns(name):
            return f"there are no patterns named `{name}`"
        case _:
            return None
