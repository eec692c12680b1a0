"""No form of a message bypasses a policy on tools, at either level: no server gets the message."""

from __future__ import annotations

import pytest

from tests.attacks.agents import AgentBench, tool_message
from tests.attacks.messages import tries

_FORBIDDEN = [
    ("narrow", "sub"),
    ("broad", "rm"),
    ("broad", "wipe"),
    ("asked", "rm"),
    ("asked", "wipe"),
    ("other", "add"),
]


@pytest.mark.parametrize(("who", "tool"), _FORBIDDEN)
def test_no_server_sees_a_forbidden_call(agents: AgentBench, who: str, tool: str) -> None:
    agents.clear()
    received = agents.make(who, tries(tool))
    assert not agents.arrived
    assert len(received) > 200
    assert not {name: data for name, data in received.items() if b'"result"' in data}


def test_what_is_allowed_arrives(agents: AgentBench) -> None:
    for who, tool in (("narrow", "add"), ("broad", "sub"), ("asked", "add"), ("free", "rm")):
        agents.clear()
        assert b"result" in agents.call(who, tool_message(tool)).body
        assert [each.server for each in agents.arrived] == ["maths"]
