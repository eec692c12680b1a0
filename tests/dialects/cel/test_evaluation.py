"""An expression gives its answers and its errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from eastgate.dialects.cel import CelEvaluationError, Variables, compile_cel
from eastgate.dialects.cel.expression import Expression
from eastgate.ir import Value
from eastgate.ir.attributes import HOST, MCP_TOOL, METHOD, PATH, PORT, TIME, Attribute, header
from tests.dialects.cel.offer import compiled, outcome

USER = header("x-user")
NO_PATH = "`request.path` is absent"
NUL = "contains NUL, which cannot be evaluated"
NO_OFFSET, NO_TIME = "a time without its offset from UTC", "not a time such as 2026-01-31T12:00:00Z"
NO_USER = 'there is no entry "x-user"'

# expression, the known values, the answer or the text of the error
TABLE: list[tuple[str, dict[Attribute, Value | None], bool | str]] = [
    ("request.path == '/x'", {PATH: "/x"}, True),
    ("request.path == '/x'", {PATH: "/y"}, False),
    # absent is an error, and an error is not false
    ("request.path == '/x'", {}, NO_PATH),
    ("request.path != '/x'", {}, NO_PATH),
    ("!(request.path == '/x')", {}, NO_PATH),
    ("request.path in ['/x']", {}, NO_PATH),
    ("request.path in []", {}, NO_PATH),
    ("request.path.startsWith('')", {}, NO_PATH),
    # but the other side of && and || may decide
    ("request.path == '/x' || request.method == 'GET'", {METHOD: "GET"}, True),
    ("request.path == '/x' || request.method == 'GET'", {METHOD: "PUT"}, NO_PATH),
    ("request.path == '/x' && request.method == 'GET'", {METHOD: "GET"}, NO_PATH),
    ("request.path == '/x' && request.method == 'GET'", {METHOD: "PUT"}, False),
    # has() asks without erring
    ("has(request.path)", {PATH: ""}, True),
    ("has(request.path)", {}, False),
    ("!has( request . path ) || request.path == '/x'", {}, True),
    ("'𝒳' == '𝒳' && has(request.path) && has(request.method)", {PATH: "/x", METHOD: "GET"}, True),
    ("has(request.headers)", {}, True),
    ("[{'path': 1}].all(request, has(request.path))", {}, True),
    ("[{'other': 1}].all(request, has(request.path))", {PATH: "/x"}, False),
    # headers: with any of the three spellings, in any letter case
    ("request.headers['x-user'] == 'alice'", {USER: "alice"}, True),
    ("request.headers['X-User'] == 'alice'", {USER: "alice"}, True),
    ("request.headers.Host == 'alice'", {header("host"): "alice"}, True),
    ("request.headers['x-user'] == 'alice'", {}, NO_USER),
    ("'X-User' in request.headers", {USER: ""}, True),
    ("'x-user' in request.headers", {}, False),
    ("has(request.headers.Accept)", {header("accept"): "*/*"}, True),
    ("has(request.headers.accept)", {}, False),
    ("'X-User' in request.headers ? request.headers['x-user'] == 'a' : true", {}, True),
    # other types
    ("destination.port in [80, 443]", {PORT: 443}, True),
    ("destination.port > 1024", {PORT: 443}, False),
    ("request.time < timestamp('2026-09-26T10:15:00Z')", {TIME: "2026-09-26T12:14:59+02:00"}, True),
    ("request.time.getHours() == 10", {TIME: "2026-09-26T12:14:59+02:00"}, True),
    ("request.time < timestamp('2026-09-26T10:15:00Z')", {}, "`request.time` is absent"),
    # values of the wrong type err, and are never compared as another type
    ("request.path == '1'", {PATH: 1}, "`request.path` is 1, not a string"),
    ("destination.port == 1", {PORT: "1"}, "`destination.port` is '1', not an int"),
    ("destination.port == 1", {PORT: True}, "`destination.port` is True, not an int"),
    ("request.headers.a == 'b'", {header("a"): 1}, "`request.headers.a` is 1, not a string"),
    ("request.time == request.time", {TIME: "2026-09-26"}, f"`request.time` is '2026-09-26', {NO_OFFSET}"),
    ("request.time == request.time", {TIME: "noon"}, f"`request.time` is 'noon', {NO_TIME}"),
    ("destination.port == 1", {PORT: 1 << 63}, "int too big to convert"),
    ("request.path == 'a'", {PATH: "\ud800"}, "`request.path` is not Unicode"),
    # the core ends a text at a NUL
    ("request.path == 'admin'", {PATH: "admin\0x"}, f"`request.path` {NUL}"),
    ("request.headers.a == 'b'", {header("a"): "b\0"}, f"`request.headers.a` {NUL}"),
    # other features of CEL
    ("request.path.matches('^/api/v[0-9]+(/|$)')", {PATH: "/api/v2/users"}, True),
    ("request.path.matches('(')", {PATH: "/"}, "invalid regular expression: missing ): ("),
    ("1 / (destination.port - 80) == 1", {PORT: 80}, "divide by zero"),
    ("['/a', '/b'].exists(p, request.path.startsWith(p))", {PATH: "/b/c"}, True),
    ("dyn(request.path)", {PATH: "/x"}, "the answer is of type string, not bool"),
    ("dyn(request.path == '/x')", {PATH: "/x"}, True),
    ("request.path == 'a\\u0000b'", {PATH: "a"}, False),
    ("request.host == 'é𝒳'", {HOST: "é𝒳"}, True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "values", "expected"), TABLE, ids=[f"{row[0]} {len(row[1])}" for row in TABLE])
def test_an_expression_answers_or_errs(text: str, values: dict[Attribute, Value | None], expected: bool | str) -> None:
    assert outcome(text, values) == expected


@pytest.mark.parametrize("text", ["!has(request.path)", "!('x-user' in request.headers)", "true || request.path == ''"])
def test_what_is_unknown_is_not_taken_for_absent(text: str) -> None:
    with pytest.raises(CelEvaluationError, match="is unknown"):
        compiled(text).evaluate({})


def test_an_expression_looks_at_what_it_names_and_at_nothing_else() -> None:
    text = "request.path == '/x' && (has(request.method) || 'X-A' in request.headers || request.headers['x-b'] == 'c')"
    assert compiled(text).attributes == {PATH, METHOD, header("x-a"), header("x-b")}
    assert compiled("has(request.headers) && 1 < 2").attributes == frozenset()
    assert compiled("request.mcp.tool_name.size() > 3").attributes == {MCP_TOOL}


def test_the_variable_of_a_loop_hides_one_of_the_dialect() -> None:
    offer = Variables(texts={"x": PATH})
    expression = compile_cel("['a'].all(x, x == 'a')", offer)
    assert isinstance(expression, Expression)
    assert expression.attributes == frozenset()
    assert expression.evaluate({}) is True


@pytest.mark.real
def test_nothing_is_loaded_before_the_first_expression() -> None:
    program = (
        "import sys, eastgate.dialects.cel\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('cel', 'cel_expr_python', 'google', 'grpc')))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
