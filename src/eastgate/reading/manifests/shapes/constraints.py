"""A rule for a resource in two forms, in one place: in Python, and in the language of an API server.

The Python rule tells an author what to write instead. The same rule for an API server is OpenAPI keywords in the
CustomResourceDefinition, or a CEL rule in it, or, if it depends on the mesh, a CEL rule of a ValidatingAdmissionPolicy.
A test compares both forms on every manifest of the repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Generic, NamedTuple, TypeVar

from eastgate.basics.diagnostics import Code
from eastgate.basics.records import dataclass
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes.shape import Check

# Rules of shapes as functions of plain data, so that a shape can check nodes and plain data. A policy is read as
# nodes with positions. Other Kubernetes objects are many, and are read as plain data. A rule that takes a node is for
# policies only; a `Demand` is for both.


V = TypeVar("V")


class Problem(NamedTuple):
    """An error in a value, or at the path `below` it."""

    code: Code
    message: str
    help: str
    below: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Demand(Generic[V]):
    """A rule that does not need the position of its value."""

    problems: Callable[[V], Iterable[Problem]]

    def __call__(self, node: Node, to: Check[Any]) -> None:
        """Report the problems of a node, each at its position."""
        value: Any = node.plain()
        for problem in self.problems(value):
            to.report(problem.code, problem.message, node.nearest(*problem.below), help=problem.help)


Rule = Callable[[Node, Check[Any]], None]


@dataclass(frozen=True, slots=True)
class Cel:
    """A CEL rule over `self`, which is true if there is no error.

    `mesh` names the mesh modes in which it applies. A CustomResourceDefinition knows no modes, so such a rule is not in
    one. It must belong to the spec, and becomes part of the admission policy for each of its modes.
    """

    rule: str
    message: str
    mesh: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule of a shape that an API server can check too. `schema` are OpenAPI keywords for its value."""

    rule: Rule
    schema: Mapping[str, object] = field(default_factory=dict)
    cel: tuple[Cel, ...] = ()

    def __call__(self, node: Node, to: Check[Any]) -> None:
        """Check the rule in Python."""
        self.rule(node, to)


def constraint(*cel: Cel, **schema: object) -> Callable[[Rule], Constraint]:
    """Declare beside a rule how an API server checks it. `list_type` is `x-kubernetes-list-type`, and so on."""
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
    """Combine several rules for one value, in this order."""

    def rule(node: Node, to: Check[Any]) -> None:
        for demand in rules:
            demand(node, to)

    constraints = [demand for demand in rules if isinstance(demand, Constraint)]
    schema = {name: value for constraint in constraints for name, value in constraint.schema.items()}
    return Constraint(rule, schema, tuple(cel for constraint in constraints for cel in constraint.cel))
