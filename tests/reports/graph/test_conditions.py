"""Conditions as short texts with exactly their meaning."""

from __future__ import annotations

import pytest

from eastgate.ir import ALWAYS, And, Is, Not, OneOf, Or, Predicate, Prefix, Present
from eastgate.ir.attributes import HOST, MCP_METHOD, MCP_TOOL, METHOD, PATH, header
from eastgate.ir.symbolic.trees import Entry
from eastgate.reach.endings import Ending
from eastgate.reports.graph.conditions import explain_branches

ALLOW, DENY = Ending(True), Ending(False)


def _method(*names: str) -> Is:
    return Is(MCP_METHOD, OneOf(frozenset(names)))


def _http(*names: str) -> Is:
    return Is(METHOD, OneOf(frozenset(names)))


def _tool(*names: str) -> And:
    return And((_method("tools/call"), Is(MCP_TOOL, OneOf(frozenset(names)))))


NO_MESSAGE = Not(Is(MCP_METHOD, Present()))
STREAM = And((NO_MESSAGE, _http("GET")))
END = And((NO_MESSAGE, _http("DELETE"), Is(header("mcp-session-id"), Present())))
MESSAGES = (_method("initialize", "ping", "tools/list"), Is(MCP_METHOD, Prefix("notifications/")))
SESSION = (*MESSAGES, STREAM, END, _method("server/discover"))
LISTED = "initialize, notifications/*, ping, tools/list"


@pytest.mark.parametrize(
    ("allowed", "text"),
    [
        (Or((*SESSION, _tool("add"))), "tool add, MCP sessions"),
        (Or((*MESSAGES, STREAM, END, _tool("add"))), "tool add, MCP sessions without server/discover"),
        (Or((*MESSAGES, _tool("add"))), f"tool add, {LISTED}"),
        (Or((*MESSAGES, STREAM)), f"{LISTED}; no MCP message if GET"),
        (Or(MESSAGES[:1]), "initialize, ping, tools/list"),
        (And((Or((*SESSION, _tool("add"))), Is(HOST, OneOf(frozenset({"h"}))))), "tool add, MCP sessions if host h"),
        (Not(_tool("drop")), "anything but tool drop"),
        (ALWAYS, None),
        (Is(PATH, Prefix("/a/")), "/a/*"),
    ],
)
def test_messages_are_said_exactly(allowed: Predicate, text: str | None) -> None:
    branches = [Entry(allowed, ALLOW), *([Entry(ALWAYS, DENY)] if allowed != ALWAYS else [])]
    assert explain_branches(branches) == text


def test_a_condition_beside_messages_is_shown_for_the_messages_that_have_it() -> None:
    limits = Is(header("x-limits"), Present())
    branches = [Entry(And((_tool("refund"), limits)), ALLOW), Entry(_tool("list"), ALLOW), Entry(ALWAYS, DENY)]
    assert explain_branches(branches) == "tool list; tool refund if any header x-limits"


def test_requests_that_are_denied_before_are_left_out() -> None:
    branches = [Entry(_tool("drop"), DENY), Entry(_tool("drop", "list"), ALLOW), Entry(ALWAYS, DENY)]
    assert explain_branches(branches) == "tool list"
    branches = [Entry(Is(PATH, OneOf(frozenset({"/a/x"}))), DENY), Entry(Is(PATH, Prefix("/a/")), ALLOW)]
    assert explain_branches([*branches, Entry(ALWAYS, DENY)]) == "/a/* except /a/x"


def test_a_guard_comes_before_its_condition() -> None:
    guard = Is(HOST, OneOf(frozenset({"h"})))
    assert explain_branches([Entry(_tool("list"), ALLOW), Entry(ALWAYS, DENY)], guard) == "host h: tool list"
    assert explain_branches([Entry(ALWAYS, ALLOW)], guard) == "host h"
    assert explain_branches([Entry(_http("GET"), ALLOW), Entry(ALWAYS, DENY)], guard) == "GET and host h"


def test_many_exceptions_are_listed_in_the_order_of_evaluation() -> None:
    denied = [
        Entry(And((Is(PATH, Prefix(f"/{'secret' * 4}{n}/")), Is(header("x-team"), Present()))), DENY) for n in range(8)
    ]
    text = explain_branches([*denied, Entry(_http("GET"), ALLOW), Entry(_http("PUT"), ALLOW), Entry(ALWAYS, DENY)])
    assert text is not None
    assert text.startswith("deny if /secret")
    assert text.endswith("; else deny in 6 more cases; else allow if GET; else allow if PUT; else deny")
