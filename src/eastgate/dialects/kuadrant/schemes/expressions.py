"""Checks of CEL, Rego and regular expressions in a scheme: whether they can be evaluated.

The evaluator itself compiles them, so that nothing is accepted here that it would reject. It is imported where it is
needed, because most schemes have patterns only.
"""

from __future__ import annotations

from eastgate.basics.regexes import regex
from eastgate.dialects.cel import CelProblem
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.validation import Checking, Demand
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import quoted

_ALLOW = regex(r"\ballow\b")


def regular_expression(node: Node, to: Checking) -> None:
    """Require a regular expression, as `matches` compares with."""
    from eastgate.dialects.kuadrant.authorino.conditions import regex_problem

    problem = regex_problem(node.text)
    if problem is not None:
        message = f"{quoted(node.text)} is not a regular expression: {problem}"
        to.report(codes.REGEX, message, node, help="write an RE2 expression; ^ and $ stand for the ends of the value")


def cel_condition(node: Node, to: Checking) -> None:
    """Require an expression that is, or may be, true or false: much of the authorization JSON has no known type."""
    from eastgate.dialects.kuadrant.authorino.problems import predicate_problem

    _cel(predicate_problem(node.text), node, "write a condition such as auth.identity.group == 'staff'", to)


def gateway_condition(node: Node, to: Checking) -> None:
    """Require an expression that is, or may be, true or false on the attributes that the filter of a gateway has."""
    from eastgate.dialects.kuadrant.authorino.problems import predicate_problem

    example = "write a condition such as request.path.startsWith('/admin')"
    _cel(predicate_problem(node.text, at_gateway=True), node, example, to)


def cel_value(node: Node, to: Checking) -> None:
    """Require an expression of any type."""
    from eastgate.dialects.kuadrant.authorino.problems import cel_problem

    _cel(cel_problem(node.text), node, "write an expression such as auth.identity.sub", to)


def _cel(problem: CelProblem | None, node: Node, example: str, to: Checking) -> None:
    if problem is not None:
        to.report(codes.CEL, problem.message, node, help=problem.help or example)


def rego_module(field: str) -> Demand:
    """Require a module that can be evaluated, and may allow something; `version` is a field beside it."""

    def rule(opa: Node, to: Checking) -> None:
        node, version = opa.get(field), opa.get("version")
        if node is None or node.kind != "a string":
            return
        is_first = version is not None and version.plain() == "v1"
        problem = _rego_problem(node.text, 1 if is_first else 0)
        if problem is not None:
            message = f"the Rego policy cannot be evaluated: {problem}"
            example = f'allow {"if " if is_first else ""}{{ input.auth.identity.sub == "jane" }}'
            to.report(codes.REGO, message, node, help=f"write rules such as {example}")

    return rule


def _rego_problem(module: str, version: int) -> str | None:
    from eastgate.dialects.kuadrant.authorino.problems import rego_problem

    if not module.strip():
        return "it is empty"
    return rego_problem(module, version) or (None if _ALLOW.search(module) else "it has no rule `allow`")
