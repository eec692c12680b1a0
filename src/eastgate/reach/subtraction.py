"""Conditions without their exceptions, as short as can easily be said: PUT, not `POST or PUT and not POST`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.ir import NEVER, Is, OneOf, Or, Predicate, Present, conjuncts
from eastgate.ir.symbolic.simplify import both, either, negation

_MOST_STEPS = 1_000


def subtract(wanted: Predicate, exceptions: Sequence[Predicate]) -> Predicate:
    """Return that a predicate holds and none of the exceptions does."""
    removed = [part for exception in exceptions for part in _alternatives(exception)]
    alternatives = list(_alternatives(wanted))
    if len(alternatives) * len(removed) > _MOST_STEPS:
        return both((wanted, *map(negation, exceptions)))
    kept = [_subtract(alternative, removed) for alternative in alternatives]
    return either(alternative for alternative in kept if alternative != NEVER)


def _alternatives(predicate: Predicate) -> Iterator[Predicate]:
    """Yield the parts of which ANY must hold, the first disjunction multiplied by what stands beside it."""
    parts = list(conjuncts(predicate))
    index = next((number for number, part in enumerate(parts) if isinstance(part, Or) and part.parts), None)
    if index is None:
        yield predicate
        return
    chosen = parts[index]
    assert isinstance(chosen, Or)  # noqa: S101 - it was looked for
    for option in chosen.parts:
        yield both((*parts[:index], option, *parts[index + 1 :]))


def _subtract(wanted: Predicate, removed: Sequence[Predicate]) -> Predicate:
    for exception in removed:
        asked = conjuncts(wanted)
        if both((wanted, exception)) == NEVER:
            continue
        rest = [part for part in conjuncts(exception) if not _is_implied(asked, part)]
        if not rest:
            return NEVER
        wanted = _without_values(asked, rest) or both((wanted, negation(both(rest))))
    return wanted


def _is_implied(asked: Sequence[Predicate], part: Predicate) -> bool:
    if part in asked:
        return True
    if not isinstance(part, Is) or part.joined:
        return False
    for own in asked:
        if isinstance(own, Is) and own.attribute is part.attribute and not own.joined:
            if isinstance(part.matcher, Present):
                return True
            if isinstance(own.matcher, OneOf) and all(part.accepts(value) for value in own.matcher.values):
                return not own.attribute.is_repeatable or len(own.matcher.values) == 1
    return False


def _without_values(asked: Sequence[Predicate], rest: Sequence[Predicate]) -> Predicate | None:
    """Return a list of values without some of them, where that is all that the exception says."""
    match rest:
        case [Is(attribute, matcher, joined=False)] if not attribute.is_repeatable:
            for index, own in enumerate(asked):
                if isinstance(own, Is) and own.attribute is attribute and isinstance(own.matcher, OneOf):
                    left = frozenset(value for value in own.matcher.values if not matcher.contains(value))
                    return both((*asked[:index], Is(attribute, OneOf(left)), *asked[index + 1 :]))
    return None
