"""CEL in AccessPolicy: which variables an expression has, and whether it can be evaluated at all."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from eastgate.diagnostics.spans import Span
from eastgate.dialects.accesspolicy import codes
from eastgate.dialects.accesspolicy.validation import Checking, Subject
from eastgate.ir.attributes import AUTHORITY, MCP_TOOL, METHOD, TARGET, TIME, URL_PATH, Attribute, header
from eastgate.manifests.node import Node
from eastgate.manifests.shapes import Field, Record, Text

if TYPE_CHECKING:
    from eastgate.languages.cel import CelProblem, Expression, Variables

__all__ = ["CEL", "cel_expression", "compiled"]

_PSEUDO_HEADERS = {":authority": AUTHORITY, ":method": METHOD, ":path": TARGET, "host": AUTHORITY}


def _header(name: str) -> Attribute:
    """A header as Envoy has it: what HTTP/1 has in its first line is among them, and so is the host."""
    return _PSEUDO_HEADERS.get(name.lower()) or header(name)


@cache
def _variables() -> Variables:
    """Return the variables that Envoy hands to expressions."""
    from eastgate.languages.cel import Variables  # few policies have expressions

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


@lru_cache(maxsize=1024)
def compiled(text: str) -> Expression | CelProblem:
    """Compile an expression once."""
    from eastgate.languages.cel import compile_cel

    return compile_cel(text, _variables())


def cel_expression(node: Node, to: Checking) -> None:
    """Report an expression that nobody could evaluate."""
    from eastgate.languages.cel import CelProblem

    found = compiled(node.text)
    if isinstance(found, CelProblem):
        to.report(codes.CEL_EXPRESSION, found.message, _within(node, found), help=found.help or _EXAMPLE)


CEL: Record[Subject] = Record(
    "cel",
    {
        "expression": Field(
            Text("a CEL expression", cel_expression),
            required=True,
            help="write expression: ..",
            about="A condition on the request, such as request.mcp.tool_name == 'search'.",
        ),
        "message": Field(Text("a message"), about="What to say where the expression decides."),
    },
)


# Where in the file


def _within(node: Node, problem: CelProblem) -> Span:
    """The part of the expression that is wrong, where it can be found in the file; otherwise all of it."""
    places = _places(node)
    if places is None:
        return node.span
    start = min(problem.start, len(places) - 1)
    line, column = places[start]
    same_line = [place for place in places[start : max(problem.end, start + 1)] if place[0] == line]
    return Span(node.source, line, column, line, same_line[-1][1] + 1)


def _places(node: Node) -> list[tuple[int, int]] | None:
    """Line and column of each character of a text, however it is quoted, folded or indented.

    Characters are found one after the other, passing over what is not part of the text: white space, the backslash
    and the doubled quote that escape a sign. White space is where the character before it is.
    """
    written = _written(node)
    places: list[tuple[int, int]] = []
    position = 0
    for character in node.text:
        if character.isspace():
            places.append(places[-1] if places else (node.line, node.column))
            continue
        while position < len(written) and written[position][0] != character:
            if not (written[position][0].isspace() or written[position][0] in "\\'"):
                return None
            position += 1
        if position == len(written):
            return None
        places.append(written[position][1:])
        position += 1
    return places if position else None


def _written(node: Node) -> list[tuple[str, int, int]]:
    """Each character of the file that the text was read from, with its line and column; without what opens it."""
    lines = range(node.line, node.end_line + 1)
    found = [
        (character, line, column)
        for line in lines
        for column, character in enumerate(node.source.line(line) + " ", start=1)
        if (line > node.line or column >= node.column) and (line < node.end_line or column < node.end_column)
    ]
    if found and found[0][0] in "|>":
        return [place for place in found if place[1] > node.line]
    return found[1:] if found and found[0][0] in "'\"" and not node.text.startswith(found[0][0]) else found
