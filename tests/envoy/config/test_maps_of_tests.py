"""Lists of tests as maps: for any value, the first test that holds decides, as in the list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eastgate.envoy.config.matching import node_matcher
from eastgate.envoy.config.predicates import MCP_METHOD_KEY, MCP_NAME_KEY
from eastgate.envoy.config.rbac import write_action
from eastgate.envoy.plan import Node, ProxyVerdict
from eastgate.ir import Is, Not, OneOf, Predicate, Prefix, Request, all_of, any_of
from eastgate.ir.attributes import MCP_METHOD, MCP_TOOL
from eastgate.ir.symbolic.trees import choice
from tests.envoy.plan.interpreter import decide_matcher
from tests.ir.symbolic.drawing import decide

TOOLS = tuple("abcdefghij")
METHODS = ("tools/call", "tools/list", "initialize", "ping", "prompts/get", "notifications/x", "resources/read")

tools = st.sets(st.sampled_from(TOOLS), min_size=1).map(lambda names: Is(MCP_TOOL, OneOf(frozenset(names))))
methods = st.sets(st.sampled_from(METHODS), min_size=1).map(lambda names: Is(MCP_METHOD, OneOf(frozenset(names))))
atoms: st.SearchStrategy[Predicate] = st.one_of(
    tools, methods, st.sampled_from([Is(MCP_METHOD, Prefix("tools/")), Not(Is(MCP_TOOL, Prefix("a")))])
)
conjunctions = st.lists(atoms, min_size=1, max_size=3).map(all_of)
predicates = st.one_of(atoms, conjunctions, st.lists(conjunctions, min_size=1, max_size=3).map(any_of))
verdicts = st.integers(0, 9).map(
    lambda number: ProxyVerdict(number % 2 == 0, 200 if number % 2 == 0 else 403, f"r{number}")
)


@st.composite
def nodes(draw: st.DrawFn, depth: int = 1) -> Node:
    ends = st.one_of(verdicts, nodes(depth - 1)) if depth else verdicts
    tests = draw(st.lists(st.tuples(predicates, ends), max_size=12))
    return choice(tests, draw(verdicts))


@given(node=nodes(), tool=st.sampled_from((None, *TOOLS, "zz")), method=st.sampled_from((None, *METHODS)))
def test_a_map_decides_as_the_list_does(node: Node, tool: str | None, method: str | None) -> None:
    expected = decide(node, Request({MCP_TOOL: tool, MCP_METHOD: method}))
    noted = {MCP_NAME_KEY: tool, MCP_METHOD_KEY: method}
    state = {key: value for key, value in noted.items() if value is not None}
    assert expected is not None
    assert decide_matcher(node_matcher(node, write_action), state) == expected.name
