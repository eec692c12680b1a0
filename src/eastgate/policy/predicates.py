"""Predicates: And, Or, Not over atoms. What a rule asks of a request, and nothing else.

`ALWAYS` is the empty And, `NEVER` the empty Or, so no dialect needs a special case for a rule
without conditions or a list without entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from eastgate.policy.attributes import Attribute
from eastgate.policy.matchers import Matcher

__all__ = ["ALWAYS", "NEVER", "And", "Is", "Not", "Or", "Predicate", "atoms", "mentions"]


@dataclass(frozen=True, slots=True)
class Is:
    """The atom: an attribute of the request is in a set of values. False where the attribute is absent."""

    attribute: Attribute
    matcher: Matcher

    def __str__(self) -> str:
        return f"{self.attribute} is {self.matcher}"


@dataclass(frozen=True, slots=True)
class And:
    """ALL parts hold."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " and ".join(_bracket(p) for p in self.parts) or "anything"


@dataclass(frozen=True, slots=True)
class Or:
    """ANY part holds."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " or ".join(_bracket(p) for p in self.parts) or "nothing"


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold. An absent attribute satisfies the negation of any atom on it."""

    part: Predicate

    def __str__(self) -> str:
        return f"not {_bracket(self.part)}"


Predicate = Is | And | Or | Not

ALWAYS: Final = And(())
NEVER: Final = Or(())


def atoms(predicate: Predicate) -> Iterator[Is]:
    """Every atom, in the order written."""
    match predicate:
        case Is():
            yield predicate
        case Not(part):
            yield from atoms(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from atoms(part)


def mentions(predicate: Predicate) -> frozenset[Attribute]:
    """The attributes that the predicate looks at."""
    return frozenset(atom.attribute for atom in atoms(predicate))


def _bracket(predicate: Predicate) -> str:
    return str(predicate) if isinstance(predicate, Is | Not) else f"({predicate})"
