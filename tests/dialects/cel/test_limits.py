"""No expression keeps a processor busy: the compiler refuses it, or it is fast."""

from __future__ import annotations

import pytest

from eastgate.dialects.cel import Expression, compile_cel
from eastgate.ir.attributes import HOST, MCP_TOOL, PATH
from tests.dialects.cel.offer import OFFER, problem
from tests.effort import effort_of


def numbers(count: int) -> str:
    return f"[{','.join('1' * count)}]"


def names(count: int) -> str:
    return ",".join(f"'{number}'" for number in range(count))


BOMBS = {
    "a loop in a loop": f"{numbers(4000)}.all(x, {numbers(4000)}.all(y, true))",
    "loops in loops": ("[1,1,1,1,1,1].all(x, " * 6) + "true" + ")" * 6,
    "a long list built": f"{numbers(8000)}.map(x, x).size() > 1",
    "texts doubled": "['aaaa']" + ".map(x, x + x)" * 25 + "[0].size() > 1",
    "lists doubled": "[[1]]" + ".map(x, x + x)" * 25 + "[0].size() > 1",
    "a long body": f"{numbers(4000)}.all(x, {' && '.join(['x < 2'] * 800)})",
    "long texts joined in a loop": f"{numbers(4000)}.all(x, ({' + '.join(['request.path'] * 25)}) != '')",
    "many patterns": " || ".join(["request.path.matches('.{900}x')"] * 300),
    "a large class": "request.path.matches('" + r"\\pL*x" * 300 + "')",
    "repetitions of repetitions": r"request.path.matches('((\\pL{9}){9}){9}')",
    "a pattern in a loop": f"{numbers(2000)}.all(x, request.path.matches('^/api/[a-z]+$'))",
    "a long pattern": f"request.path.matches('{'a' * 4000}')",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(name: str) -> None:
    found, effort = effort_of(lambda: problem(BOMBS[name]))
    assert "steps, and 3,000,000 are allowed" in found.message
    assert found.help == "shorten its lists or patterns, or nest fewer loops"
    assert effort < 500  # far more than compiling takes, far less than running would


# The heaviest accepted expressions of their kind. The limit is about a tenth of a second.
HEAVY = {
    "a loop": f"{numbers(8000)}.all(x, x < 2)",
    "a loop in a loop": f"{numbers(95)}.all(x, {numbers(95)}.all(y, x == y))",
    "a list built": f"{numbers(1500)}.map(x, x).size() > 1",
    "texts doubled": "['aaaa']" + ".map(x, x + x)" * 21 + "[0].size() > 1",
    "lists doubled": "[[1]]" + ".map(x, x + x)" * 17 + "[0].size() > 1",
    "a long body": f"{numbers(1000)}.all(x, {' && '.join(['x < 2'] * 500)})",
    "texts joined in a loop": f"{numbers(60)}.all(x, ({' + '.join(['request.path'] * 25)}) != '')",
    "a pattern": "request.path.matches('.{900}x')",
    "a long pattern": f"request.path.matches('{'a' * 1300}')",
    "patterns": " || ".join(["request.path.matches('^/api/[a-z]+$')"] * 120),
    "unicode patterns": " || ".join([r"request.path.matches('\\pL*x')"] * 20),
    "a long list": f"request.path in [{names(2000)}]",
}


@pytest.mark.parametrize("name", HEAVY)
@pytest.mark.parametrize("value", ["a" * 4096, "é" * 4096, "/api/" + "az" * 2045 + "?"], ids=["a", "é", "path"])
def test_what_is_accepted_is_quick(name: str, value: str) -> None:
    expression = compile_cel(HEAVY[name], OFFER)
    assert isinstance(expression, Expression), expression
    _, effort = effort_of(lambda: expression.evaluate({PATH: value}))
    assert effort < 250  # the limit is about a tenth of this


@pytest.mark.parametrize(
    "text",
    [
        r"request.host.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+example\\.com$')",
        "['read', 'list', 'get'].exists(verb, request.mcp.tool_name.startsWith(verb))",
        f"request.mcp.tool_name in [{names(1000)}]",
        "['^/a/.*', '^/b/.*'].exists(p, request.path.startsWith(p)) && request.path.matches('^/[a-z]+/[0-9]{1,10}$')",
    ],
)
def test_what_people_write_is_far_below_the_limit(text: str) -> None:
    expression = compile_cel(text, OFFER)
    assert isinstance(expression, Expression), expression
    expression.evaluate({HOST: "a.example.com", MCP_TOOL: "7", PATH: "/a/1"})


def test_no_accepted_loop_runs_out_of_the_iterations_of_the_core() -> None:
    for side in range(90, 110):
        expression = compile_cel(f"{numbers(side)}.all(x, {numbers(side)}.all(y, true))", OFFER)
        assert side < 100 or not isinstance(expression, Expression)
        if isinstance(expression, Expression):
            assert expression.evaluate({}) is True
