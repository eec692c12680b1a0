"""Clauses: rules split into callers, ports and other conditions, and indexed by the callers that they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import NamedTuple

from eastgate.basics.records import dataclass
from eastgate.ir import AccountsOf, Is, OneOf, Or, Predicate, Value, conjuncts
from eastgate.ir.attributes import IDENTITY, PORT


class Clause(NamedTuple):
    """One rule, or one alternative of it: ALL of its parts. `rank` is the index of the rule."""

    rank: int
    callers: NamedCallers | None  # None: any caller
    ports: frozenset[Value] | None  # None: any port
    rest: Sequence[Predicate]


class NamedCallers(NamedTuple):
    """ANY of these identities, or any service account under one of these paths."""

    exact: Iterable[Value]
    stems: Sequence[str]


@dataclass(slots=True)
class ClausesByCaller:
    """Clauses by the callers that they name, in the order of the rules."""

    exact: dict[object, list[Clause]] = field(default_factory=dict)
    stems: dict[str, list[Clause]] = field(default_factory=dict)
    anyone: list[Clause] = field(default_factory=list)
    plain: bool = True  # no clause reads more than identity and port
    entries: int = 0

    @classmethod
    def of(cls, rules: Iterable[Predicate]) -> ClausesByCaller:
        """Index the clauses of these rules."""
        filed = cls()
        for rank, predicate in enumerate(rules):
            for clause in _clauses(rank, predicate):
                filed._add(clause)
        return filed

    def _add(self, clause: Clause) -> None:
        self.plain = self.plain and not clause.rest
        if clause.callers is None:
            self.anyone.append(clause)
            return
        for identity in clause.callers.exact:
            self.exact.setdefault(identity, []).append(clause)
            self.entries += 1
        for stem in clause.callers.stems:
            self.stems.setdefault(stem, []).append(clause)
            self.entries += 1


def _clauses(rank: int, predicate: Predicate) -> Iterator[Clause]:
    """Yield the alternatives of a rule. ANY clause matches exactly if the predicate matches."""
    if isinstance(predicate, Or) and _named_callers(predicate) is None:
        for part in predicate.parts:
            yield from _clauses(rank, part)
        return
    callers: NamedCallers | None = None
    ports: frozenset[Value] | None = None
    rest: list[Predicate] = []
    for part in conjuncts(predicate):
        if callers is None and (named := _named_callers(part)) is not None:
            callers = named
        elif ports is None and (numbers := _ports(part)) is not None:
            ports = numbers
        else:
            rest.append(part)
    yield Clause(rank, callers, ports, rest)


# Attributes are compared by identity. An attribute that is only equal becomes a part of the rest, which is also
# correct.


def _named_callers(predicate: Predicate) -> NamedCallers | None:
    """Return the callers that a part names, or None if the part has any other condition."""
    if isinstance(predicate, Is):
        if predicate.attribute is IDENTITY:
            matcher = predicate.matcher
            if isinstance(matcher, OneOf):
                return NamedCallers(matcher.values, ())
            if isinstance(matcher, AccountsOf):
                return NamedCallers((), (matcher.path,))
        return None
    if isinstance(predicate, Or):
        each = [_named_callers(part) for part in predicate.parts]
        known = [callers for callers in each if callers is not None]
        if len(known) == len(each):
            exact = dict.fromkeys(value for callers in known for value in callers.exact)
            return NamedCallers(exact, [stem for callers in known for stem in callers.stems])
    return None


def _ports(predicate: Predicate) -> frozenset[Value] | None:
    if isinstance(predicate, Is) and predicate.attribute is PORT and isinstance(predicate.matcher, OneOf):
        return predicate.matcher.values
    return None
