"""Searches for rules of any kind: the few rules that name the caller, in order, each with its other conditions.

A request is compared with the rules for its identity, for its namespace and for any caller. The first of them that
matches decides. They are in one list, unless the list would be mostly copies of rules for many callers. A long list has
an index of its own, on the attribute that distinguishes its rules best:

    exact text  ->  rules        so a thousand rules on a thousand paths
    a prefix    ->  rules        cost no more than a few
    a suffix    ->  rules
    the others

The prefixes of a text are looked up from the shortest to the longest. If a short one is missing, no longer one is
there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.engine.clauses import Clause, ClausesByCaller
from eastgate.engine.conditions import Condition, compile_condition
from eastgate.ir import And, Is, OneOf, Or, Predicate, Prefix, Request, Suffix, Value, values_of
from eastgate.ir.attributes import PORT, Attribute
from eastgate.ir.spiffe import accounts_path_of

_Rule: TypeAlias = tuple[int, tuple[Predicate, ...]]  # its rank, and ALL its other conditions
_Search: TypeAlias = Callable[[Request, int], int]  # the rank of the first rule that matches, if smaller than that

_MAX_UNINDEXED_RULES = 4  # a list of this length is searched faster than an index
_MAX_COPIES_PER_CLAUSE = 4  # clauses for many callers, for each clause for few callers


def build_search(filed: ClausesByCaller, results: Sequence[int]) -> Callable[[Request], int]:
    """Return a search. The result of rule i is `results[i]`; the last is for no match. It needs identity and port."""
    for_anyone = _List(filed.anyone, _search(filed.anyone))
    for_stems = {stem: _narrow(for_anyone, clauses) for stem, clauses in filed.stems.items()}
    exact: dict[object, _Search] = {}
    for identity, clauses in filed.exact.items():
        wider = for_stems.get(accounts_path_of(str(identity)) or "", for_anyone) if for_stems else for_anyone
        exact[identity] = _narrow(wider, clauses).search
    stems = {stem: narrowed.search for stem, narrowed in for_stems.items()}
    anyone = for_anyone.search
    miss = len(results) - 1

    def find(request: Request) -> int:
        identity = request.identity
        search = exact.get(identity)
        if search is None:
            search = anyone
            if stems and isinstance(identity, str):
                search = stems.get(accounts_path_of(identity) or "", anyone)
        return results[search(request, miss)]

    return find


class _List(NamedTuple):
    """A search and its clauses. The clauses are None if several searches share them."""

    clauses: Sequence[Clause] | None
    search: _Search


def _narrow(wider: _List, clauses: Sequence[Clause]) -> _List:
    """Return a search of a wider list and more clauses. It is one list, unless that would be mostly copies."""
    if wider.clauses is None or len(wider.clauses) > _MAX_COPIES_PER_CLAUSE * len(clauses):
        return _List(None, _search_both(_search(clauses), wider.search))
    every = sorted((*wider.clauses, *clauses), key=_rank)
    return _List(every, _search(every))


def _rank(clause: Clause) -> int:
    return clause.rank


def _search_both(narrow: _Search, wider: _Search) -> _Search:
    return lambda request, best: wider(request, narrow(request, best))


def _search(clauses: Iterable[Clause]) -> _Search:
    rules = [
        (clause.rank, (*((Is(PORT, OneOf(clause.ports)),) if clause.ports is not None else ()), *clause.rest))
        for clause in clauses
    ]
    attribute = _distinguishing_attribute(rules) if len(rules) > _MAX_UNINDEXED_RULES else None
    return _in_order(rules) if attribute is None else _by_value(rules, attribute)


def _in_order(rules: Sequence[_Rule]) -> _Search:
    ordered = [(rank, _condition(parts)) for rank, parts in rules]
    if len(ordered) == 1:
        return _single(*ordered[0])

    def search(request: Request, best: int) -> int:
        for rank, condition in ordered:
            if rank >= best:
                break
            if condition is None or condition(request):
                return rank
        return best

    return search


def _single(rank: int, condition: Condition | None) -> _Search:
    if condition is None:
        return lambda _request, best: min(rank, best)
    return lambda request, best: rank if rank < best and condition(request) else best


def _condition(parts: tuple[Predicate, ...]) -> Condition | None:
    return compile_condition(And(parts)) if parts else None


# Indexes


def _distinguishing_attribute(rules: Iterable[_Rule]) -> Attribute | None:
    """Return the attribute that distinguishes most rules, or None."""
    texts: dict[Attribute, set[object]] = {}
    for _, parts in rules:
        for part in parts:
            attribute = _attribute(part)
            if attribute is not None:
                texts.setdefault(attribute, set()).update(_keys(part))
    return max(texts, key=lambda attribute: len(texts[attribute]), default=None)


def _attribute(part: Predicate) -> Attribute | None:
    """Return the one attribute that a part compares with texts, or None if the part does anything else."""
    match part:
        case Is(attribute, OneOf() | Prefix() | Suffix(), joined=False):
            return attribute
        case Or(parts):
            attributes = {_attribute(part) for part in parts}
            return attributes.pop() if len(attributes) == 1 else None
        case _:
            return None


_Key: TypeAlias = tuple[type[Prefix | Suffix] | None, Value]


def _keys(part: Predicate) -> Iterator[_Key]:
    """Yield the keys of such a part. ANY of them finds it."""
    match part:
        case Is(_, OneOf(values)):
            yield from ((None, value) for value in values)
        case Is(_, Prefix(text)):
            yield Prefix, text
        case Is(_, Suffix(text)):
            yield Suffix, text
        case Or(parts):
            for part in parts:
                yield from _keys(part)


@dataclass(slots=True)
class _Shelves:
    """Rules by the keys of one part. `others` are the rules without such a part."""

    exact: dict[Value, list[_Rule]] = field(default_factory=dict)
    prefixes: dict[str, list[_Rule]] = field(default_factory=dict)
    suffixes: dict[str, list[_Rule]] = field(default_factory=dict)
    others: list[_Rule] = field(default_factory=list)

    def add(self, rule: _Rule, keys: Iterable[_Key]) -> None:
        """File a rule once under each of its keys."""
        for kind, text in dict.fromkeys(keys):
            if kind is None:
                self.exact.setdefault(text, []).append(rule)
            elif isinstance(text, str):
                by_text = self.prefixes if kind is Prefix else self.suffixes
                by_text.setdefault(text, []).append(rule)


class _Level(NamedTuple):
    """Texts of one length, each with the rules that are filed under it, and the level of its continuations."""

    length: int
    nodes: dict[str, tuple[_Search | None, _Level | None]]


def _nest(rules: Mapping[str, list[_Rule]], *, at_end: bool = False) -> _Level | None:
    """File rules by prefix, or by suffix, the shortest text first."""
    if not rules:
        return None
    length = min(map(len, rules))
    longer: dict[str, dict[str, list[_Rule]]] = {}
    for text, filed in rules.items():
        short = text[len(text) - length :] if at_end else text[:length]
        rest = longer.setdefault(short, {})
        if text != short:
            rest[text] = filed
    nodes = {
        short: (_in_order(rules[short]) if short in rules else None, _nest(rest, at_end=at_end))
        for short, rest in longer.items()
    }
    return _Level(length, nodes)


def _file(rules: Iterable[_Rule], attribute: Attribute) -> _Shelves:
    """File rules by their first part about an attribute. A rule that is found satisfies this part."""
    shelves = _Shelves()
    for rank, parts in rules:
        index = next((number for number, part in enumerate(parts) if _attribute(part) is attribute), None)
        if index is None:
            shelves.others.append((rank, parts))
        else:
            shelves.add((rank, parts[:index] + parts[index + 1 :]), _keys(parts[index]))
    return shelves


def _by_value(rules: Iterable[_Rule], attribute: Attribute) -> _Search:
    shelves = _file(rules, attribute)
    exact = {text: _in_order(filed) for text, filed in shelves.exact.items()}
    prefixes = _nest(shelves.prefixes)
    suffixes = _nest(shelves.suffixes, at_end=True)
    others = _in_order(shelves.others) if shelves.others else None

    def search(request: Request, best: int) -> int:
        known = request.values[attribute]
        for value in (known,) if isinstance(known, str) else values_of(known):
            if (filed := exact.get(value)) is not None:
                best = filed(request, best)
            if isinstance(value, str):
                level = prefixes
                while level is not None:
                    length, nodes = level
                    if (node := nodes.get(value[:length])) is None:
                        break
                    filed, level = node
                    if filed is not None:
                        best = filed(request, best)
                level = suffixes
                while level is not None:
                    length, nodes = level
                    if (node := nodes.get(value[-length:] if length else "")) is None:
                        break
                    filed, level = node
                    if filed is not None:
                        best = filed(request, best)
        return best if others is None else others(request, best)

    return search
