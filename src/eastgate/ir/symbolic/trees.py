"""Decision trees: ordered tests with a decision at each leaf.

Partial evaluation turns layers into decision trees. The depth of a tree is the number of stages that a request passes,
for any number of rules: later tests are in the same list, never in the `otherwise` of earlier ones. Trees may share
parts, so code that walks a large tree caches nodes by their identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from eastgate.basics.records import dataclass
from eastgate.ir import ALWAYS, NEVER, And, Computed, Is, Not, Or, Predicate, Request, all_of
from eastgate.ir.attributes import UNKNOWN

# Three-valued truth: True, False, or None if the result depends on unknown attributes.


def truth(predicate: Predicate, request: Request) -> bool | None:
    """Return whether a predicate holds, or None if that depends on unknown attributes."""
    match predicate:
        case Is(attribute, matcher, joined):
            value = request.values.get(attribute, UNKNOWN)
            if isinstance(value, str) and not joined:
                return matcher.contains(value)
            if value is UNKNOWN or (joined and request.assumed.get(predicate) is not None):
                return request.assumed.get(predicate)
            return predicate.accepts(value)
        case Computed(attributes=attributes):
            if predicate in request.assumed:
                return request.assumed[predicate]
            return predicate.holds(request.values) if attributes <= request.values.keys() else None
        case Not(part):
            held = truth(part, request)
            return None if held is None else not held
        case And(parts):
            return _combine(parts, request, decisive=False)
        case Or(parts):
            return _combine(parts, request, decisive=True)


def _combine(parts: Iterable[Predicate], request: Request, *, decisive: bool) -> bool | None:
    """Combine three-valued parts by And (decisive False) or Or (decisive True)."""
    combined: bool | None = not decisive
    for part in parts:
        held = truth(part, request)
        if held is decisive:
            return decisive
        if held is None:
            combined = None
    return combined


L = TypeVar("L")
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class DecisionNode(Generic[L]):
    """Ordered tests: the FIRST that holds decides, else `otherwise`."""

    tests: tuple[tuple[Predicate, Tree[L]], ...]
    otherwise: Tree[L]


Tree: TypeAlias = L | DecisionNode[L]


class Entry(NamedTuple, Generic[L]):
    """One line of a decision list, a tree of one level: the FIRST line whose predicate holds decides."""

    when: Predicate
    end: L


def choice(tests: Iterable[tuple[Predicate, Tree[L]]], otherwise: Tree[L]) -> Tree[L]:
    """Return one flat list of ordered tests, without tests whose result is certain."""
    kept: list[tuple[Predicate, Tree[L]]] = []
    for when, node in tests:
        if when == ALWAYS:
            otherwise = node
            break
        if when != NEVER:
            kept.append((when, node))
    if isinstance(otherwise, DecisionNode):
        kept += otherwise.tests
        otherwise = otherwise.otherwise
    return DecisionNode(tuple(kept), otherwise) if kept else otherwise


def leaves(tree: Tree[L]) -> Iterator[L]:
    """Yield each leaf once for each path to it."""
    if not isinstance(tree, DecisionNode):
        yield tree
        return
    for _, node in tree.tests:
        yield from leaves(node)
    yield from leaves(tree.otherwise)


def map_leaves(tree: Tree[L], of: Callable[[L], M]) -> Tree[M]:
    """Return the tree with each leaf replaced."""
    if not isinstance(tree, DecisionNode):
        return of(tree)
    return choice(((when, map_leaves(node, of)) for when, node in tree.tests), map_leaves(tree.otherwise, of))


def flatten(tree: Tree[L]) -> list[Entry[L]]:
    """Return the tree as a decision list, whose last line always holds."""
    if not isinstance(tree, DecisionNode):
        return [Entry(ALWAYS, tree)]
    nested = [*tree.tests, (ALWAYS, tree.otherwise)]
    return [Entry(all_of([when, inner]), end) for when, node in nested for inner, end in flatten(node)]
