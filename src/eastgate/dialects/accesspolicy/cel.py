"""CEL in AccessPolicy: the variables of an expression, and a check that it can be evaluated."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from eastgate.basics.caching import SizedCache
from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects.accesspolicy import codes
from eastgate.dialects.accesspolicy.validation import Checking
from eastgate.ir.attributes import AUTHORITY, MCP_TOOL, METHOD, TARGET, TIME, URL_PATH, Attribute, header
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Field, Record, Text
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.dialects.cel import CelProblem, Expression, Variables

_PSEUDO_HEADERS = {":authority": AUTHORITY, ":method": METHOD, ":path": TARGET, "host": AUTHORITY}


def _header(name: str) -> Attribute:
    """Return the attribute of a header as Envoy has it; the first line of HTTP/1 and the host count as headers."""
    return _PSEUDO_HEADERS.get(name.lower()) or header(name)


@cache
def _variables() -> Variables:
    """Return the variables that Envoy gives to expressions."""
    from eastgate.dialects.cel import Variables  # few policies have expressions

    return Variables(
        texts={
            "request.mcp.tool_name": MCP_TOOL,
            "request.path": TARGET,
            "request.url_path": URL_PATH,
            "request.method": METHOD,
            "request.host": AUTHORITY,
        },
        times={"request.time": TIME},
        maps={"request.headers": _header},
    )


_EXAMPLE = "write a condition such as request.mcp.tool_name == 'search'"


_COMPILED: SizedCache[str, Expression | CelProblem] = SizedCache(1 << 20)  # characters


def compiled(text: str) -> Expression | CelProblem:
    """Compile an expression once."""
    from eastgate.dialects.cel import compile_cel

    return _COMPILED.get(text, lambda: (compile_cel(text, _variables()), len(text)))


def cel_expression(node: Node, to: Checking) -> None:
    """Report an expression that cannot be evaluated."""
    from eastgate.dialects.cel import CelProblem

    problem = compiled(node.text)
    if isinstance(problem, CelProblem):
        to.report(codes.CEL_EXPRESSION, problem.message, _within(node, problem), help=problem.help or _EXAMPLE)


CEL: Record[Settings] = Record(
    "cel",
    {
        "expression": Field(
            Text("a CEL expression", cel_expression),
            required=True,
            help="write expression: ..",
            about="A condition on the request, such as request.mcp.tool_name == 'search'.",
        ),
        "message": Field(Text("a message"), about="The message for requests that the expression decides."),
    },
)


# Spans in the file


def _within(node: Node, problem: CelProblem) -> Span:
    """Return the span of the wrong part of an expression, or of all of it if the file does not contain the part."""
    positions = _positions(node)
    if positions is None:
        return node.span
    start = min(problem.start, len(positions) - 1)
    line, column = positions[start]
    same_line = [position for position in positions[start : max(problem.end, start + 1)] if position[0] == line]
    return node.source.place(line, column, line, same_line[-1][1] + 1)


def _positions(node: Node) -> list[tuple[int, int]] | None:
    """Return line and column of each character of a text, for any quoting, folding or indentation in YAML.

    The function searches one character after the other. It skips white space, backslashes and doubled quotes that are
    not part of the text. White space has the position of the character before it.
    """
    characters = _characters(node)
    positions: list[tuple[int, int]] = []
    index = 0
    for character in node.text:
        if character.isspace():
            positions.append(positions[-1] if positions else (node.line, node.column))
            continue
        while index < len(characters) and characters[index][0] != character:
            if not (characters[index][0].isspace() or characters[index][0] in "\\'"):
                return None
            index += 1
        if index == len(characters):
            return None
        positions.append(characters[index][1:])
        index += 1
    return positions if index else None


def _characters(node: Node) -> list[tuple[str, int, int]]:
    """Return the characters of the text in its file, with line and column, without the opening quote or indicator."""
    lines = range(node.line, node.end_line + 1)
    characters = [
        (character, line, column)
        for line in lines
        for column, character in enumerate(node.source.line(line) + " ", start=1)
        if (line > node.line or column >= node.column) and (line < node.end_line or column < node.end_column)
    ]
    first = characters[0][0] if characters else ""
    if first and first in "|>":
        return [(character, line, column) for character, line, column in characters if line > node.line]
    return characters[1:] if first and first in "'\"" and not node.text.startswith(first) else characters
