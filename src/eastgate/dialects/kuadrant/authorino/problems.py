"""Finds problems of a scheme's expressions before they are evaluated, as messages for the author.

The evaluator denies if an expression has one of these problems. A reader that calls these checks reports a message
instead of an outage.
"""

from __future__ import annotations

from eastgate.dialects.cel import GATEWAY_ROOTS, CelProblem, compile_document_cel
from eastgate.dialects.kuadrant.authorino.authorization import rego_problem

__all__ = ["cel_problem", "predicate_problem", "rego_problem"]


def cel_problem(text: str) -> CelProblem | None:
    """Return the problem of a CEL expression of any type, or None."""
    compiled = compile_document_cel(text)
    return compiled if isinstance(compiled, CelProblem) else None


def predicate_problem(text: str, *, at_gateway: bool = False) -> CelProblem | None:
    """Return the problem of a CEL expression that must be true or false, or None."""
    compiled = compile_document_cel(text, GATEWAY_ROOTS) if at_gateway else compile_document_cel(text)
    if isinstance(compiled, CelProblem):
        return compiled
    if compiled.type not in ("BOOL", "DYN"):
        return CelProblem(f"the expression is of type {compiled.type.lower()}, not bool", 0, len(text))
    return None
