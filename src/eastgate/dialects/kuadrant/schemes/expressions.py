"""CEL, Rego and regular expressions in a scheme: whether they can be evaluated at all."""

from __future__ import annotations

from eastgate.cel import CelProblem
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.checking import Checking
from eastgate.schema import quoted
from eastgate.sources.node import Node
from eastgate.world.patterns import pattern_problem

__all__ = ["cel_condition", "cel_value", "rego_module", "regular_expression"]


def regular_expression(node: Node, to: Checking) -> None:
    """What `matches` looks for."""
    problem = pattern_problem(node.text)
    if problem is not None:
        message = f"{quoted(node.text)} is not a regular expression: {problem}"
        to.report(codes.REGEX, message, node, help="write an RE2 expression; ^ and $ stand for the ends of the value")


# CEL


def cel_condition(node: Node, to: Checking) -> None:
    """An expression that is true or false, or may be: of much of the authorization JSON no type is known before."""
    kind = _cel_type(node, to, "write a condition such as auth.identity.group == 'staff'")
    if kind not in (None, "BOOL", "DYN"):
        message = f"{quoted(node.text)} is neither true nor false"
        to.report(codes.CEL, message, node, help="compare it with something: .. == ..")


def cel_value(node: Node, to: Checking) -> None:
    """An expression of any type."""
    _cel_type(node, to, "write an expression such as auth.identity.sub")


def _cel_type(node: Node, to: Checking, example: str) -> str | None:
    """The type of an expression; None where it is none, which is reported."""
    from eastgate.cel.documents import compile_document_cel  # here, because most schemes have no expression

    found = compile_document_cel(node.text)
    if isinstance(found, CelProblem):
        to.report(codes.CEL, found.message, node, help=found.help or example)
        return None
    return found.type


# Rego


def rego_module(node: Node, version: int, to: Checking) -> None:
    """A module that can be compiled."""
    if not node.text.strip():
        to.report(
            codes.REGO, "the policy is empty", node, help='write rules: allow { input.auth.identity.sub == ".." }'
        )
