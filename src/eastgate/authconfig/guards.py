"""The conditions that guard parts of a scheme, and which of them may err.

Where one errs, Authorino skips what it guards, and Eastgate denies.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.authconfig.conditions import regex_problem
from eastgate.authconfig.model import All, AnyOf, Condition, Operator, Pattern, Predicate, Scheme

__all__ = ["erring_guards"]


def erring_guards(scheme: Scheme) -> Iterator[tuple[Pattern | Predicate, str]]:
    """Every condition of a `when` that may err, and why."""
    guards = [
        scheme.when,
        *(one.when for one in scheme.identities),
        *(one.when for one in scheme.metadata),
        *(one.when for one in scheme.authorizations),
        *(one.when for one in scheme.responses),
    ]
    for when in guards:
        for condition in _leaves(when) if when is not None else ():
            why = _may_err(condition)
            if why is not None:
                yield condition, why


def _leaves(condition: Condition) -> Iterator[Pattern | Predicate]:
    match condition:
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from _leaves(part)
        case _:
            yield condition


def _may_err(condition: Pattern | Predicate) -> str | None:
    match condition:
        case Pattern(operator=Operator.MATCHES, value=value) if regex_problem(value):
            return f"`{value}` is not a regular expression"
        case Predicate(text):
            return f"`{text}` fails where something that it looks at is missing"
        case _:
            return None
