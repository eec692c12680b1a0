"""Rules as the tables want them: who, on which ports, and whatever else they ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from eastgate.policy import AccountsOf, And, Is, OneOf, Or, Predicate, Value
from eastgate.policy.attributes import IDENTITY, PORT

__all__ = ["Clause", "clauses"]


class Clause(NamedTuple):
    """One rule, or one alternative of it: ALL of its parts. None means anyone, or any port."""

    who: Who | None
    ports: frozenset[Value] | None
    rest: Sequence[Predicate]


class Who(NamedTuple):
    """ANY of these identities, or any service account under one of these stems, which end with `/sa`."""

    exact: Iterable[Value]
    stems: Sequence[str]


def clauses(predicate: Predicate) -> Iterator[Clause]:
    """The alternatives of a rule: ANY of the clauses matches exactly where the predicate does."""
    if isinstance(predicate, Or):
        named = _who(predicate)
        if named is not None:
            yield Clause(named, None, ())
            return
        for part in predicate.parts:
            yield from clauses(part)
        return
    who: Who | None = None
    ports: frozenset[Value] | None = None
    rest: list[Predicate] = []
    for part in _conjuncts(predicate):
        if who is None and (named := _who(part)) is not None:
            who = named
        elif ports is None and (numbers := _ports(part)) is not None:
            ports = numbers
        else:
            rest.append(part)
    yield Clause(who, ports, rest)


def _conjuncts(predicate: Predicate) -> Iterable[Predicate]:
    if not isinstance(predicate, And):
        return (predicate,)
    if not any(isinstance(part, And) for part in predicate.parts):
        return predicate.parts
    return [inner for part in predicate.parts for inner in _conjuncts(part)]


# Attributes are compared by identity: one that is merely equal becomes a part of the rest, which is as right.


def _who(predicate: Predicate) -> Who | None:
    """Whom a part names, where it names nothing else."""
    if isinstance(predicate, Is):
        if predicate.attribute is IDENTITY:
            matcher = predicate.matcher
            if isinstance(matcher, OneOf):
                return Who(matcher.values, ())
            if isinstance(matcher, AccountsOf):
                return Who((), (f"{matcher.stem}/sa",))
        return None
    if isinstance(predicate, Or):
        named = [_who(part) for part in predicate.parts]
        found = [one for one in named if one is not None]
        if len(found) == len(named):
            exact = dict.fromkeys(value for one in found for value in one.exact)
            return Who(exact, [stem for one in found for stem in one.stems])
    return None


def _ports(predicate: Predicate) -> frozenset[Value] | None:
    if isinstance(predicate, Is) and predicate.attribute is PORT and isinstance(predicate.matcher, OneOf):
        return predicate.matcher.values
    return None
