"""Generated predicates over a world that is so small that tests can try every request.

The world is closed: if predicates of `ATOMS` can distinguish two requests, `EVERY` contains both kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from random import Random
from typing import TypeVar

from eastgate.ir import ALWAYS, And, Is, Known, Not, OneOf, Or, Predicate, Prefix, Present, Request, Suffix
from eastgate.ir.attributes import METHOD, PORT, Attribute, header
from eastgate.ir.symbolic.trees import DecisionNode, Tree, truth

__all__ = ["ATOMS", "EVERY", "TEAM", "WORLD", "decide", "draw"]

L = TypeVar("L")
TEAM = header("x-team")
ATOMS: Sequence[Predicate] = [
    *(Is(METHOD, OneOf(frozenset(texts))) for texts in ({"a"}, {"b"}, {"a", "ab"})),
    *(Is(METHOD, matcher) for matcher in (Prefix("a"), Suffix("b"), Present())),
    *(Is(PORT, OneOf(frozenset(ports))) for ports in ({1}, {1, 2})),
    *(Is(TEAM, OneOf(frozenset({text}))) for text in ("red", "blue")),
    Is(TEAM, Present()),
]
WORLD: Mapping[Attribute, Sequence[Known]] = {
    METHOD: ["a", "b", "ab", "c", "ac", "cb", "acb", None],
    PORT: [1, 2, 3],
    TEAM: ["red", "blue", ("red", "blue"), "green", None],
}
EVERY: Sequence[Mapping[Attribute, Known]] = [
    dict(zip(WORLD, values, strict=True)) for values in product(*WORLD.values())
]


def draw(random: Random, depth: int = 2) -> Predicate:
    """Draw a predicate."""
    if not depth or random.random() < 0.4:
        atom = random.choice(ATOMS)
        literals: list[Predicate] = [atom, atom, atom, Not(atom), ALWAYS]
        return random.choice(literals)
    parts = tuple(draw(random, depth - 1) for _ in range(random.randint(1, 3)))
    return And(parts) if random.random() < 0.5 else Or(parts)


def decide(tree: Tree[L], request: Request) -> L | None:
    """Return the end that a request reaches, or None if that depends on unknown attributes."""
    while isinstance(tree, DecisionNode):
        for when, node in tree.tests:
            held = truth(when, request)
            if held is None:
                return None
            if held:
                tree = node
                break
        else:
            tree = tree.otherwise
    return tree
