"""A lowered predicate has exactly the result of the CEL core, for every present or absent value."""

from __future__ import annotations

import json
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.dialects.cel import CelEvaluationError, Expression
from eastgate.ir import Request, Value
from eastgate.ir.attributes import MCP_TOOL, PATH, PORT, Attribute, header
from eastgate.ir.symbolic.trees import truth
from tests.dialects.cel.offer import compiled

# Small alphabets, so that values are often equal to literals.
TEXTS = ["", "a", "ab", "aba", "b", "é𝒳", "\x01\"\\'\n"]
NUMBERS = [-1, 0, 80]
TEXT_OPERANDS = {
    "request.path": PATH,
    "request.mcp.tool_name": MCP_TOOL,
    "request.headers.a": header("a"),
    "request.headers['A']": header("a"),
}
Values = dict[Attribute, Value | None]
VALUES: dict[Attribute, list[Value | None]] = {
    PATH: [None, *TEXTS],
    MCP_TOOL: [None, *TEXTS],
    header("a"): [None, *TEXTS],
    PORT: [None, *NUMBERS],
}


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


operands = st.sampled_from(sorted(TEXT_OPERANDS))
literals = st.sampled_from(TEXTS).map(quoted)
numbers = st.sampled_from(NUMBERS).map(str)
equals = st.sampled_from(["==", "!="])


def listed(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(items, max_size=3).map(lambda found: f"[{', '.join(found)}]")


simple = st.one_of(
    st.builds("{} {} {}".format, operands, equals, literals),
    st.builds("{} {} {}".format, literals, equals, operands),
    st.builds("{} in {}".format, operands, listed(literals)),
    st.builds("{}.{}({})".format, operands, st.sampled_from(["startsWith", "endsWith"]), literals),
    st.builds("destination.port {} {}".format, equals, numbers),
    st.builds("destination.port in {}".format, listed(numbers)),
    st.sampled_from(["has(request.path)", "has(destination.port)", "has(request.headers.A)", "'a' in request.headers"]),
    st.sampled_from(["true", "false", "has(request.headers)"]),
)
opaque = st.one_of(
    st.builds("{}.contains({})".format, operands, literals),
    st.builds("{} {} {}".format, operands, equals, operands),
    st.builds("destination.port {} {}".format, st.sampled_from(["<", ">="]), numbers),
    st.builds("{} in [{}, 1, null]".format, operands, literals),
    st.sampled_from(["1 / destination.port > 0", "request.path.matches('(')", "dyn(request.path) == 1"]),
)


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return parts.map(lambda part: f"!({part})") | st.builds(
        "({}) {} ({})".format, parts, st.sampled_from(["&&", "||"]), parts
    )


simple_expressions = st.recursive(simple, combined, max_leaves=7)
any_expressions = st.recursive(simple | opaque, combined, max_leaves=7)
requests = st.fixed_dictionaries({attribute: st.sampled_from(known) for attribute, known in VALUES.items()})


def agree(expression: Expression, values: Values) -> None:
    request = Request(values)
    try:
        answer: bool | None = expression.evaluate(values)
    except CelEvaluationError:
        answer = None
    if expression.lowered is not None:
        assert (truth(expression.lowered, request) is True) == (answer is True), "an error must not allow"
    if expression.lowered_or_error is not None:
        held = truth(expression.lowered_or_error, request)
        assert (held is True) == (answer is not False), "an error must not skip a deny"


@settings(max_examples=600, deadline=None)
@given(simple_expressions, st.lists(requests, min_size=4, max_size=8))
def test_simple_expressions_are_lowered_and_mean_the_same(text: str, many: list[Values]) -> None:
    expression = compiled(text)
    assert expression.lowered is not None
    assert expression.lowered_or_error is not None
    for values in many:
        agree(expression, values)


@settings(max_examples=400, deadline=None)
@given(any_expressions, st.lists(requests, min_size=4, max_size=8))
def test_what_is_lowered_of_other_expressions_means_the_same(text: str, many: list[Values]) -> None:
    expression = compiled(text)
    for values in many:
        agree(expression, values)


def test_every_pair_of_atoms_means_the_same_for_every_pair_of_values() -> None:
    atoms = [
        "request.path == 'a'",
        "request.path != 'a'",
        "request.path in []",
        "request.path.startsWith('a')",
        "has(request.path)",
        "request.headers.a == 'a'",
        "'a' in request.headers",
        "true",
    ]
    signs = ["{} && {}", "{} || !({})", "!({} && {})"]
    for left, right, sign in product(atoms, atoms, signs):
        expression = compiled(sign.format(left, right))
        assert expression.lowered is not None
        for path, entry in product([None, "a", "b"], repeat=2):
            agree(expression, {PATH: path, header("a"): entry})
