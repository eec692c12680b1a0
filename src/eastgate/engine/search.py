"""Searches, for rules of any kind: the few that name the caller, in order, each with the conditions that are left.

A request meets up to three lists of rules (for its identity, for its namespace, for everybody), and the first rule of
all that matches is heard. A long list has an index of its own, on the attribute that tells its rules apart best:

    exact text  ->  rules        and so a thousand rules on a thousand paths
    a prefix    ->  rules        cost no more than a few
    a suffix    ->  rules
    the others
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from eastgate.engine.clauses import Clause, Filed
from eastgate.engine.conditions import Condition, compile_condition
from eastgate.ir import And, Is, OneOf, Or, Predicate, Prefix, Request, Suffix, Value, values_of
from eastgate.ir.attributes import PORT, Attribute
from eastgate.ir.service_accounts import accounts_path_of
from eastgate.records import dataclass

__all__ = ["build_search"]

_Rule: TypeAlias = tuple[int, tuple[Predicate, ...]]  # its rank, and ALL conditions that are left
_Search: TypeAlias = Callable[[Request, int], int]  # the rank of the first rule that matches, if smaller than that

_SHORT = 4  # rules: a shorter list is searched faster than an index


def build_search(filed: Filed, says: Sequence[int]) -> Callable[[Request], int]:
    """Rule i says `says[i]`, and the last is said where none matches. Identity and port must be known."""
    exact = {identity: _search(clauses) for identity, clauses in filed.exact.items()}
    stems = {stem: _search(clauses) for stem, clauses in filed.stems.items()}
    anyone = _search(filed.anyone) if filed.anyone else None
    miss = len(says) - 1

    def find(request: Request) -> int:
        best = miss
        identity = request.identity
        named = exact.get(identity)
        if named is not None:
            best = named(request, best)
        if stems and isinstance(identity, str):
            named = stems.get(accounts_path_of(identity) or "")
            if named is not None:
                best = named(request, best)
        if anyone is not None:
            best = anyone(request, best)
        return says[best]

    return find


def _search(clauses: Iterable[Clause]) -> _Search:
    rules = [
        (clause.rank, (*((Is(PORT, OneOf(clause.ports)),) if clause.ports is not None else ()), *clause.rest))
        for clause in clauses
    ]
    attribute = _telling(rules) if len(rules) > _SHORT else None
    return _in_order(rules) if attribute is None else _by_value(rules, attribute)


def _in_order(rules: Sequence[_Rule]) -> _Search:
    ordered = [(rank, _condition(parts)) for rank, parts in rules]

    def search(request: Request, best: int) -> int:
        for rank, condition in ordered:
            if rank >= best:
                break
            if condition is None or condition(request):
                return rank
        return best

    return search


def _condition(parts: tuple[Predicate, ...]) -> Condition | None:
    return compile_condition(And(parts)) if parts else None


# Indexes


def _telling(rules: Iterable[_Rule]) -> Attribute | None:
    """The attribute that most rules can be told apart by, if there is one."""
    texts: dict[Attribute, set[object]] = {}
    for _, parts in rules:
        for part in parts:
            attribute = _attribute(part)
            if attribute is not None:
                texts.setdefault(attribute, set()).update(_keys(part))
    return max(texts, key=lambda attribute: len(texts[attribute]), default=None)


def _attribute(part: Predicate) -> Attribute | None:
    """The one attribute that a part compares with texts, if that is all it does."""
    match part:
        case Is(attribute, OneOf() | Prefix() | Suffix(), joined=False):
            return attribute
        case Or(parts):
            attributes = {_attribute(one) for one in parts}
            return attributes.pop() if len(attributes) == 1 else None
        case _:
            return None


_Key: TypeAlias = tuple[type[Prefix | Suffix] | None, Value]


def _keys(part: Predicate) -> Iterator[_Key]:
    """Where to file a part of this kind: under ANY of these it is found."""
    match part:
        case Is(_, OneOf(values)):
            yield from ((None, value) for value in values)
        case Is(_, Prefix(text)):
            yield Prefix, text
        case Is(_, Suffix(text)):
            yield Suffix, text
        case Or(parts):
            for one in parts:
                yield from _keys(one)


@dataclass(slots=True)
class _Shelves:
    """Rules by the keys of one part; those without such a part are the others."""

    exact: dict[Value, list[_Rule]] = field(default_factory=dict)
    prefixes: dict[int, dict[str, list[_Rule]]] = field(default_factory=dict)
    suffixes: dict[int, dict[str, list[_Rule]]] = field(default_factory=dict)
    others: list[_Rule] = field(default_factory=list)

    def add(self, rule: _Rule, keys: Iterable[_Key]) -> None:
        """File a rule under its keys, once under each."""
        for kind, text in dict.fromkeys(keys):
            if kind is None:
                self.exact.setdefault(text, []).append(rule)
            elif isinstance(text, str):
                by_length = self.prefixes if kind is Prefix else self.suffixes
                by_length.setdefault(len(text), {}).setdefault(text, []).append(rule)


def _by_value(rules: Iterable[_Rule], attribute: Attribute) -> _Search:
    shelves = _Shelves()
    for rank, parts in rules:
        place = next((n for n, part in enumerate(parts) if _attribute(part) == attribute), None)
        if place is None:
            shelves.others.append((rank, parts))
        else:  # where it is found, that part holds
            shelves.add((rank, parts[:place] + parts[place + 1 :]), _keys(parts[place]))
    exact = {text: _in_order(found) for text, found in shelves.exact.items()}
    prefixes = [(n, {t: _in_order(found) for t, found in texts.items()}) for n, texts in shelves.prefixes.items()]
    suffixes = [(n, {t: _in_order(found) for t, found in texts.items()}) for n, texts in shelves.suffixes.items()]
    others = _in_order(shelves.others)

    def search(request: Request, best: int) -> int:
        for value in values_of(request.values[attribute]):
            if (found := exact.get(value)) is not None:
                best = found(request, best)
            if isinstance(value, str):
                for length, texts in prefixes:
                    if (found := texts.get(value[:length])) is not None:
                        best = found(request, best)
                for length, texts in suffixes:
                    if (found := texts.get(value[-length:] if length else "")) is not None:
                        best = found(request, best)
        return others(request, best)

    return search
