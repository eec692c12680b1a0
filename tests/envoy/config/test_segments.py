"""Lists of tests, split into maps and lists, decide as the whole list does, for any texts."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from eastgate.envoy.config.segments import Segment, Test, TestMap, segments
from eastgate.envoy.plan import ProxyVerdict
from eastgate.ir import ALWAYS, And, Is, Not, OneOf, Or, Predicate, Present, Request
from eastgate.ir.attributes import MCP_METHOD, MCP_TOOL, METHOD
from eastgate.ir.symbolic.trees import truth

TOOLS = [f"tool-{number}" for number in range(12)]
CALL, LIST = (Is(MCP_METHOD, OneOf(frozenset({method}))) for method in ("tools/call", "tools/list"))
GET = And((Not(Is(MCP_METHOD, Present())), Is(METHOD, OneOf(frozenset({"GET"})))))
OTHERWISE = ProxyVerdict(False, 403, "none")
REQUESTS = [
    Request({MCP_METHOD: method, MCP_TOOL: tool, METHOD: verb})
    for method, tool, verb in product(
        ("tools/call", "tools/list", "ping", None), [*TOOLS, "other", None], ("GET", "POST")
    )
]


def calls(*tools: str) -> Predicate:
    return And((CALL, Is(MCP_TOOL, OneOf(frozenset(tools)))))


def verdict(number: int) -> ProxyVerdict:
    return ProxyVerdict(True, 200, f"rule-{number}")


def first_of(tests: list[Test], request: Request) -> object:
    return next((inner for when, inner in tests if truth(when, request)), None)


def decided(parts: list[Segment], request: Request) -> object:
    """Decide as Envoy does: after a map without a verdict, the next part decides."""
    for part in parts:
        tests = part.entries.get(str(request.get(part.attribute)), []) if isinstance(part, TestMap) else part
        if (inner := first_of(tests, request)) is not None:
            return inner
    return None


def guard(random: Random) -> Predicate:
    """A denial by another level for all texts that it does not allow."""
    allowed = [calls(*random.sample(TOOLS, random.randint(1, 2))) for _ in range(6)]
    messages: list[Predicate] = [LIST, CALL, ALWAYS]
    return And((random.choice(messages), Not(Or((*allowed, LIST, GET)))))


def rule(random: Random) -> Predicate:
    tools = calls(*random.sample(TOOLS, random.randint(1, 3)))
    return random.choice(
        [tools, Or((tools, LIST, GET)), Or((LIST, tools)), LIST, Not(tools), ALWAYS, Or((GET, LIST)), guard(random)]
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_first_test_that_holds_decides(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    tests: list[Test] = [(rule(random), verdict(number)) for number in range(random.randint(1, 14))]
    parts = segments(tests, OTHERWISE)
    for request in REQUESTS:
        assert (decided(parts, request) or OTHERWISE) == (first_of(tests, request) or OTHERWISE)


def test_rules_for_the_tools_of_one_agent_become_one_map() -> None:
    tests: list[Test] = [(Or((calls(tool), LIST, GET)), verdict(number)) for number, tool in enumerate(TOOLS)]
    [before, tools] = segments(tests, OTHERWISE)
    assert isinstance(before, list)
    assert isinstance(tools, TestMap)
    assert list(tools.entries) == TOOLS[1:]


def test_a_level_that_excludes_all_but_many_tools_is_looked_up() -> None:
    allowed = Or((*map(calls, TOOLS), LIST))
    denied = ProxyVerdict(False, 403, "first-level")
    tests: list[Test] = [(Not(allowed), denied), *((calls(tool), verdict(n)) for n, tool in enumerate(TOOLS[:-1]))]
    [tools, others] = segments(tests, OTHERWISE)
    assert isinstance(tools, TestMap)
    assert set(tools.entries) == set(TOOLS)
    assert max(map(len, tools.entries.values())) == 3
    assert others == [(Not(LIST), denied)]
