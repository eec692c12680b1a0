"""Rules as the tables want them: who, on which ports, and other conditions; filed by the callers that they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import NamedTuple

from eastgate.basics.records import dataclass
from eastgate.ir import AccountsOf, Is, OneOf, Or, Predicate, Value, conjuncts
from eastgate.ir.attributes import IDENTITY, PORT


class Clause(NamedTuple):
    """One rule, or one alternative of it: ALL of its parts. `rank` is the place of the rule in the order."""

    rank: int
    who: Who | None  # None: anyone
    ports: frozenset[Value] | None  # None: any port
    rest: Sequence[Predicate]


class Who(NamedTuple):
    """ANY of these identities, or any service account under one of these paths."""

    exact: Iterable[Value]
    stems: Sequence[str]


@dataclass(slots=True)
class Filed:
    """Clauses by the callers that they name, in the order of the rules. An exact identity is a text, or never met."""

    exact: dict[object, list[Clause]] = field(default_factory=dict)
    stems: dict[str, list[Clause]] = field(default_factory=dict)
    anyone: list[Clause] = field(default_factory=list)
    plain: bool = True  # no clause asks for more than identity and port
    entries: int = 0

    @classmethod
    def of(cls, rules: Iterable[Predicate]) -> Filed:
        """Index the clauses of these rules."""
        filed = cls()
        for rank, predicate in enumerate(rules):
            for clause in _clauses(rank, predicate):
                filed._add(clause)
        return filed

    def _add(self, clause: Clause) -> None:
        self.plain = self.plain and not clause.rest
        if clause.who is None:
            self.anyone.append(clause)
            return
        for identity in clause.who.exact:
            self.exact.setdefault(identity, []).append(clause)
            self.entries += 1
        for stem in clause.who.stems:
            self.stems.setdefault(stem, []).append(clause)
            self.entries += 1


def _clauses(rank: int, predicate: Predicate) -> Iterator[Clause]:
    """Yield the alternatives of a rule: ANY of the clauses matches exactly where the predicate does."""
    if isinstance(predicate, Or) and _who(predicate) is None:
        for part in predicate.parts:
            yield from _clauses(rank, part)
        return
    who: Who | None = None
    ports: frozenset[Value] | None = None
    rest: list[Predicate] = []
    for part in conjuncts(predicate):
        if who is None and (callers := _who(part)) is not None:
            who = callers
        elif ports is None and (numbers := _ports(part)) is not None:
            ports = numbers
        else:
            rest.append(part)
    yield Clause(rank, who, ports, rest)


# Attributes are compared by identity: one that is merely equal becomes a part of the rest, which is as right.


def _who(predicate: Predicate) -> Who | None:
    """Return the callers that a part names; None where it asks for anything else."""
    if isinstance(predicate, Is):
        if predicate.attribute is IDENTITY:
            matcher = predicate.matcher
            if isinstance(matcher, OneOf):
                return Who(matcher.values, ())
            if isinstance(matcher, AccountsOf):
                return Who((), (matcher.path,))
        return None
    if isinstance(predicate, Or):
        each = [_who(part) for part in predicate.parts]
        callers = [who for who in each if who is not None]
        if len(callers) == len(each):
            exact = dict.fromkeys(value for who in callers for value in who.exact)
            return Who(exact, [stem for who in callers for stem in who.stems])
    return None


def _ports(predicate: Predicate) -> frozenset[Value] | None:
    if isinstance(predicate, Is) and predicate.attribute is PORT and isinstance(predicate.matcher, OneOf):
        return predicate.matcher.values
    return None
