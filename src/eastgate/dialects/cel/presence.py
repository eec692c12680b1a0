"""Tests of presence: `has(request.path)`.

The core checks dotted variables, and takes `has` of one for the variable itself: `has(request.path) == "/x"` would
compare the path. So each such test becomes a hidden variable of type bool before the check. The name takes exactly the
room of the test it replaces, and the offsets of everything after it stay what they were.
"""

from __future__ import annotations

import re

from eastgate.dialects.cel.problems import CelProblem, unknown_variable
from eastgate.dialects.cel.syntax import HasVariable, Local, Node, Select, walk
from eastgate.dialects.cel.variables import Variables, presence_of


def with_presence_tests(text: str, tree: Node, variables: Variables) -> str | CelProblem:
    """Replace tests of variables by hidden variables."""
    for node in walk(tree):
        if not (isinstance(node, Select) and node.tested):
            continue
        path = _dotted(node)
        if path is None or path not in variables:
            continue
        pattern = re.compile(r"has\s*\(\s*\.?\s*" + r"\s*\.\s*".join(path.split(".")) + r"\s*\)")
        match = pattern.match(text, text.rfind("has", 0, node.at))
        if match is None:
            return CelProblem(f"this test is not plain enough: write `has({path})`", node.at, node.at + 1)
        hidden = presence_of(path).ljust(len(match[0]))
        text = text[: match.start()] + hidden + text[match.end() :]
    return text


def stray_presence(text: str, tree: Node, variables: Variables) -> CelProblem | None:
    """Return a hidden variable that the author wrote: it is none of theirs."""
    for node in walk(tree):
        if isinstance(node, HasVariable) and text.startswith(presence_of(node.path), node.at):
            return unknown_variable(text, presence_of(node.path), node.at, variables)
    return None


def _dotted(node: Node) -> str | None:
    """Return the path that a chain of fields spells, unless it starts at the variable of a loop."""
    match node:
        case Local(name, bound=False):
            return name
        case Select(operand, name):
            path = _dotted(operand)
            return None if path is None else f"{path}.{name}"
        case _:
            return None
