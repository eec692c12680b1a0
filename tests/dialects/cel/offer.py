"""The variables of the expressions in these tests: those of AccessPolicy, and a number."""

from __future__ import annotations

from eastgate.dialects.cel import CelEvaluationError, CelProblem, Expression, Variables, compile_cel
from eastgate.ir import Value
from eastgate.ir.attributes import HOST, MCP_TOOL, METHOD, PATH, PORT, TIME, Attribute, header

OFFER = Variables(
    texts={"request.mcp.tool_name": MCP_TOOL, "request.path": PATH, "request.method": METHOD, "request.host": HOST},
    numbers={"destination.port": PORT},
    times={"request.time": TIME},
    maps={"request.headers": header},
)


def compiled(text: str) -> Expression:
    found = compile_cel(text, OFFER)
    assert isinstance(found, Expression), found
    return found


def problem(text: str) -> CelProblem:
    found = compile_cel(text, OFFER)
    assert isinstance(found, CelProblem), found
    assert 0 <= found.start <= found.end <= len(text)
    return found


def outcome(text: str, values: dict[Attribute, Value | None]) -> bool | str:
    """Return the answer, or the text of the error. Attributes outside of `values` are absent."""
    expression = compiled(text)
    try:
        return expression.evaluate({**dict.fromkeys(expression.attributes), **values})
    except CelEvaluationError as error:
        return str(error)
