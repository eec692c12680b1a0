"""Decision trees as short decision lists, for people and for comparing: the FIRST entry whose condition holds decides.

A list is built from the ends of a tree backwards, and what nobody can take disappears on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from eastgate.ir import ALWAYS, NEVER, Predicate, conjuncts
from eastgate.ir.symbolic.simplify import both
from eastgate.ir.symbolic.trees import DecisionNode, Entry, Tree

_MOST_ENTRIES = 400
MOST_COMPARED = 120  # entries that are compared with each other


class TooManyEntries(Exception):  # noqa: N818 - it is an answer: too much to be read
    """More conditions than anybody reads."""


class End(Protocol):
    """The end of a decision list. `is_unopposed`: it allows because no rule applied."""

    @property
    def allowed(self) -> bool:
        """Return whether it allows."""

    @property
    def is_unopposed(self) -> bool:
        """Return whether it allows because no rule applied."""


L = TypeVar("L")
E = TypeVar("E", bound=End)


def list_tree(tree: Tree[L]) -> list[Entry[L]]:
    """Return a tree as a decision list. Raises TooManyEntries."""
    return _listed(tree, {})


def _listed(tree: Tree[L], known: dict[int, list[Entry[L]]]) -> list[Entry[L]]:
    if not isinstance(tree, DecisionNode):
        return [Entry(ALWAYS, tree)]
    entries = known.get(id(tree))
    if entries is None:
        nested = [*tree.tests, (ALWAYS, tree.otherwise)]
        entries = _tidy(entry for when, node in nested for entry in _guarded(when, _listed(node, known)))
        known[id(tree)] = entries
    return entries


def in_sequence(lists: Sequence[Sequence[Entry[E]]], nothing: E) -> list[Entry[E]]:
    """Combine lists of which ALL must allow, in this order; the first denial decides. Raises TooManyEntries.

    An open end behind an acceptance is that acceptance; `nothing` is the end of no lists at all.
    """
    rest = [Entry(ALWAYS, nothing)]
    for entries in reversed(lists):
        behind = rest
        rest = _tidy(
            combined
            for entry in entries
            for combined in (_guarded(entry.when, _accepted(behind, entry.end)) if entry.end.allowed else [entry])
        )
    return rest


def in_order(cases: Iterable[tuple[Predicate, Sequence[Entry[L]]]]) -> list[Entry[L]]:
    """Combine lists of which the FIRST whose condition holds decides. Raises TooManyEntries."""
    return _tidy(entry for when, entries in cases for entry in _guarded(when, entries))


def _accepted(entries: Iterable[Entry[E]], by: E) -> list[Entry[E]]:
    return [Entry(when, by) if end.is_unopposed else Entry(when, end) for when, end in entries]


def _guarded(when: Predicate, entries: Sequence[Entry[L]]) -> Sequence[Entry[L]]:
    if when == NEVER:
        return []
    return entries if when == ALWAYS else [Entry(both((when, inner)), end) for inner, end in entries]


def _tidy(entries: Iterable[Entry[L]]) -> list[Entry[L]]:
    """Return entries without unreachable ones, and without those that the last one makes redundant."""
    kept: list[Entry[L]] = []
    sets: list[frozenset[Predicate]] = []
    for entry in entries:
        if entry.when == NEVER:
            continue
        asked = frozenset(conjuncts(entry.when))
        if len(kept) <= MOST_COMPARED and any(other <= asked for other in sets):
            continue
        kept.append(entry)
        sets.append(asked)
        if entry.when == ALWAYS:
            break
        if len(kept) > _MOST_ENTRIES:
            raise TooManyEntries
    while len(kept) > 1 and kept[-2].end == kept[-1].end:
        del kept[-2]
    return kept
