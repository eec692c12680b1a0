"""Predicates: And, Or, Not over atoms. A predicate is the condition of a rule.

`ALWAYS` is the empty And and `NEVER` the empty Or, so no dialect needs a special case for a rule without conditions or
for an empty list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.ir.attributes import Attribute
from eastgate.ir.matchers import Known, Matcher, Value, joined, values_of


@dataclass(frozen=True, slots=True)
class Is:
    """The atom: an attribute of the request is in a set of values. False if the attribute is absent.

    If an attribute is repeated, ANY of its values must be in the set. With `joined`, the test is about all values as
    one text, as expressions see them.
    """

    attribute: Attribute
    matcher: Matcher
    joined: bool = False

    def accepts(self, value: Known) -> bool:
        """Return whether the atom holds for a known value of the attribute."""
        return any(map(self.matcher.contains, values_of(joined(value) if self.joined else value)))

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


@dataclass(frozen=True, slots=True)
class Computed:
    """A test that no matcher can express, such as a CEL expression.

    `on_error` is the result after an error. It must never allow, and never keep a rule from denying. If the test reads
    an unknown attribute, its result may be true or false. `pattern`, if the test can be written so, is an equivalent
    regular expression (RE2) that must match one whole attribute. If that attribute is repeated, a pattern must match
    ANY value; other tests see all values as one text.
    """

    text: str
    attributes: frozenset[Attribute]
    test: Callable[[Mapping[Attribute, Value | None]], bool] = field(compare=False, repr=False)
    on_error: bool = False
    pattern: tuple[Attribute, str] | None = field(default=None, compare=False, repr=False)

    def holds(self, values: Mapping[Attribute, Known]) -> bool:
        """Return whether the test holds. Every attribute that it reads must be known or absent."""
        attribute = self.pattern[0] if self.pattern is not None else None
        several = values.get(attribute) if attribute is not None else None
        if attribute is not None and isinstance(several, tuple):
            return any(self._holds({attribute: value}) for value in several)
        return self._holds({seen: joined(values[seen]) for seen in self.attributes if seen in values})

    def _holds(self, values: Mapping[Attribute, Value | None]) -> bool:
        try:
            return self.test(values)
        except Exception:  # any error in the evaluator fails closed
            return self.on_error

    def __str__(self) -> str:
        return self.text


Predicate = Is | And | Or | Not | Computed

ALWAYS: Final = And(())
NEVER: Final = Or(())


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """Return a predicate that holds if ALL parts hold: without ALWAYS, and a single part unchanged."""
    asked = tuple(part for part in parts if part != ALWAYS)
    return asked[0] if len(asked) == 1 else And(asked)


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """Return a predicate that holds if ANY part holds: NEVER without parts, and a single part unchanged."""
    chosen = tuple(parts)
    return chosen[0] if len(chosen) == 1 else Or(chosen)


def rewrite(predicate: Predicate, atom: Callable[[Is | Computed], Predicate]) -> Predicate:
    """Replace each atom of a predicate, and simplify parts that become certain."""
    match predicate:
        case Is() | Computed():
            return atom(predicate)
        case Not(part):
            rest = rewrite(part, atom)
            return NEVER if rest == ALWAYS else ALWAYS if rest == NEVER else Not(rest)
        case And(parts):
            kept = [rewrite(part, atom) for part in parts]
            return NEVER if NEVER in kept else all_of(kept)
        case Or(parts):
            kept = [rewrite(part, atom) for part in parts]
            return ALWAYS if ALWAYS in kept else any_of(part for part in kept if part != NEVER)


def assume(predicate: Predicate, asks: Callable[[Is | Computed], bool], *, held: bool) -> Predicate:
    """Return the predicate as if every such atom supported it, or, with `held` False, opposed it."""
    match predicate:
        case Is() | Computed():
            if asks(predicate):
                return ALWAYS if held else NEVER
            return predicate
        case Not(part):
            inner = assume(part, asks, held=not held)
            return NEVER if inner == ALWAYS else ALWAYS if inner == NEVER else Not(inner)
        case And(parts):
            kept = [assume(part, asks, held=held) for part in parts]
            return NEVER if NEVER in kept else all_of(kept)
        case Or(parts):
            kept = [assume(part, asks, held=held) for part in parts]
            return ALWAYS if ALWAYS in kept else any_of(part for part in kept if part != NEVER)


def atoms(predicate: Predicate) -> Iterator[Is | Computed]:
    """Yield every atom, in the order written."""
    match predicate:
        case Is() | Computed():
            yield predicate
        case Not(part):
            yield from atoms(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from atoms(part)


def conjuncts(predicate: Predicate) -> Sequence[Predicate]:
    """Return the parts that must ALL hold. None of them is a conjunction itself."""
    if not isinstance(predicate, And):
        return (predicate,)
    if not any(isinstance(part, And) for part in predicate.parts):
        return predicate.parts
    return [inner for part in predicate.parts for inner in conjuncts(part)]


def mentions(predicate: Predicate) -> frozenset[Attribute]:
    """Return the attributes that the predicate reads."""
    attributes: set[Attribute] = set()
    for atom in atoms(predicate):
        attributes |= {atom.attribute} if isinstance(atom, Is) else atom.attributes
    return frozenset(attributes)


def _bracket(predicate: Predicate) -> str:
    return str(predicate) if isinstance(predicate, Is | Not | Computed) else f"({predicate})"
