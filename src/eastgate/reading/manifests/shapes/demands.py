"""Rules of shapes that are functions of plain data, so that a shape can be compared with data of either kind.

A policy is read with positions, as nodes. Of Kubernetes' own objects there are many, and they are read without. A rule
that takes a node is for policies only; a `Demand` is for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from eastgate.basics.diagnostics import Code
from eastgate.basics.records import dataclass
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes.shape import Check

V = TypeVar("V")


class Problem(NamedTuple):
    """An error in a value, or in what is `below` it."""

    code: Code
    message: str
    help: str
    below: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Demand(Generic[V]):
    """A rule that looks at a value without its position."""

    problems: Callable[[V], Iterable[Problem]]

    def __call__(self, node: Node, to: Check[Any]) -> None:
        """Report the problems of a node, each where it is."""
        value: Any = node.plain()
        for problem in self.problems(value):
            to.report(problem.code, problem.message, node.nearest(*problem.below), help=problem.help)
