"""A demand on a resource said twice, in one place: in Python, and in the words that an API server checks by itself.

The Python rule tells an author what to write instead. Where there is no Eastgate, only an API server, the same demand
is OpenAPI keywords in the CustomResourceDefinition, or a CEL rule in it, or, where it depends on the mesh, a CEL rule
of a ValidatingAdmissionPolicy. A test holds them against each other on every manifest that there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Generic, NamedTuple, TypeVar

from eastgate.basics.diagnostics import Code
from eastgate.basics.records import dataclass
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes.shape import Check

# Rules of shapes that are functions of plain data, so that a shape can be compared with data of either kind.
#
# A policy is read with positions, as nodes. Of Kubernetes' own objects there are many, and they are read without. A
# rule that takes a node is for policies only; a `Demand` is for both.


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


Rule = Callable[[Node, Check[Any]], None]


@dataclass(frozen=True, slots=True)
class Cel:
    """A CEL rule over `self`, true where nothing is wrong.

    `mesh` names the mesh modes in which it holds. Such a rule stands in no CustomResourceDefinition, which knows no
    modes; it must hang on the spec, and becomes part of the admission policy for each of its modes.
    """

    rule: str
    message: str
    mesh: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule of a shape that an API server can check too. `schema` are OpenAPI keywords for what the rule looks at."""

    rule: Rule
    schema: Mapping[str, object] = field(default_factory=dict)
    cel: tuple[Cel, ...] = ()

    def __call__(self, node: Node, to: Check[Any]) -> None:
        """Check in Python."""
        self.rule(node, to)


def constraint(*cel: Cel, **schema: object) -> Callable[[Rule], Constraint]:
    """State beside a rule how an API server checks the same. `list_type` is `x-kubernetes-list-type`, and so on."""
    keywords = {_KEYWORDS.get(name, name): value for name, value in schema.items()}
    return lambda rule: Constraint(rule, keywords, cel)


_KEYWORDS = {
    "list_type": "x-kubernetes-list-type",
    "list_keys": "x-kubernetes-list-map-keys",
    "not_": "not",
}


def not_empty(code: Code, message: str, way_out: str) -> Constraint:
    """Require a list with at least one entry."""

    @constraint(minItems=1)
    def rule(node: Node, to: Check[Any]) -> None:
        if not list(node):
            to.report(code, message, node, help=way_out)

    return rule


def all_of(*rules: Rule) -> Constraint:
    """Combine several demands on one thing, in this order."""

    def rule(node: Node, to: Check[Any]) -> None:
        for demand in rules:
            demand(node, to)

    constraints = [demand for demand in rules if isinstance(demand, Constraint)]
    schema = {name: value for constraint in constraints for name, value in constraint.schema.items()}
    return Constraint(rule, schema, tuple(cel for constraint in constraints for cel in constraint.cel))
