"""The tools that each agent may call, with the official SDK at both ends."""

from __future__ import annotations

import pytest

from tests.agents.manifests import GATEWAY, Manifest, asks, backend, denied, tools
from tests.agents.running import LEGACY, MODERN, OLD, SDKS, AgentMesh, Denied, Sdk

BOTH_LEVELS = (
    tools("at-gateway", GATEWAY, {"writer": ["add", "maths/mul", "wipe"], "reader": ["read", "notes/add", "sub"]}),
    tools("at-maths", backend("maths"), {"writer": ["add", "mul", "sub"], "reader": ["sub", "add"]}),
    tools("at-notes", backend("notes"), {"writer": ["add", "wipe"], "reader": ["add", "read"]}),
)
SEEN = {
    ("writer", "maths"): ["add", "mul"],
    ("writer", "notes"): ["add", "wipe"],
    ("reader", "maths"): ["sub"],
    ("reader", "notes"): ["add", "read"],
}


@pytest.mark.parametrize("sdk", SDKS, ids=str)
def test_an_agent_sees_and_calls_its_tools_of_each_server_and_no_others(agents: AgentMesh, sdk: Sdk) -> None:
    """Both servers have a tool `add`, with different callers."""
    agents.enforce(*BOTH_LEVELS)
    for (account, server), seen in SEEN.items():
        agent = agents.agent(account, server, sdk)
        assert agent.tools() == seen
        agents.forget()
        for tool in ("add", "sub", "mul") if server == "maths" else ("add", "read", "wipe"):
            arguments = {"a": 1, "b": 2} if tool in ("add", "sub", "mul") else {}
            if tool in seen:
                assert agent.call(tool, **arguments)
            else:
                assert _denial(agents, account, server, sdk, tool, **arguments).message == "forbidden"
                with pytest.raises(Denied, match=r"^forbidden$"):
                    agent.call(tool, **arguments)
        assert agents.called == [f"{server}/{tool}" for tool in _in_order(seen, server)]


def _in_order(seen: list[str], server: str) -> list[str]:
    return [tool for tool in (("add", "sub", "mul") if server == "maths" else ("add", "read", "wipe")) if tool in seen]


def _denial(agents: AgentMesh, account: str, server: str, sdk: Sdk, tool: str, **arguments: object) -> Denied:
    agent = agents.agent(account, server, sdk)
    with pytest.raises(Denied) as raised:
        agent.call(tool, **arguments)
    return raised.value


@pytest.mark.parametrize("sdk", [MODERN, OLD], ids=str)
@pytest.mark.parametrize("target", [GATEWAY, backend("maths")], ids=["gateway", "backend"])
def test_a_call_is_denied_at_either_level_by_each_kind_of_policy(agents: AgentMesh, target: Manifest, sdk: Sdk) -> None:
    everything = tools("everything", target, {"writer": ["add", "sub", "mul"]})
    denials: dict[str, tuple[Manifest, ...]] = {
        "InlineTools": (tools("some", target, {"writer": ["add"]}),),
        "Deny": (denied("not-sub", target, {"writer": ["sub"]}), everything),
        "ExternalAuth": (asks("ask", target, "writer", "GRPC", body=True), everything),
    }
    agents.behave("small")
    for policies in denials.values():
        agents.enforce(*policies)
        agents.forget()
        agent = agents.agent("writer", "maths", sdk)
        assert agent.call("add", a=1, b=2) == "maths 3"
        with pytest.raises(Denied) as raised:
            agent.call("sub", a=1000, b=2)
        assert (raised.value.code, raised.value.message, raised.value.data) == (-32001, "forbidden", None)
        assert agent.call("add", a=2, b=2) == "maths 4", "the session goes on"
        assert agents.called == ["maths/add", "maths/add"]


@pytest.mark.parametrize("sdk", SDKS, ids=str)
def test_an_unlisted_caller_is_denied_or_proceeds_as_the_setting_says(agents: AgentMesh, sdk: Sdk) -> None:
    policies = [tools("at-gateway", GATEWAY, {"writer": ["add"]})]
    agents.enforce(*policies, unlistedCaller="deny")
    agents.forget()
    with pytest.raises(Denied) as raised:
        agents.agent("stranger", "maths", sdk)
    assert raised.value.message == "forbidden"
    assert agents.arrived == []
    agents.enforce(*policies, unlistedCaller="proceed")
    stranger = agents.agent("stranger", "maths", sdk)
    assert len(stranger.tools()) == 8
    assert stranger.call("mul", a=2, b=3) == "maths 6"
    writer = agents.agent("writer", "maths", sdk)
    assert writer.tools() == ["add"]
    with pytest.raises(Denied, match=r"^forbidden$"):
        writer.call("mul", a=2, b=3)
    agents.enforce(*policies, tools("at-maths", backend("maths"), {"writer": ["add"]}), unlistedCaller="proceed")
    assert len(agents.agent("stranger", "notes", sdk).tools()) == 3


@pytest.mark.parametrize("sdk", [MODERN, LEGACY], ids=str)
def test_without_policies_a_gateway_shows_everything(agents: AgentMesh, sdk: Sdk) -> None:
    agents.enforce()
    agent = agents.agent("stranger", "notes", sdk)
    assert agent.tools() == ["add", "read", "wipe"]
    assert agent.call("wipe") == "wiped"


@pytest.mark.parametrize("sdk", SDKS, ids=str)
@pytest.mark.parametrize("server", ["json", "stateless", "old"])
def test_servers_outside_of_the_cluster_are_guarded_alike(agents: AgentMesh, server: str, sdk: Sdk) -> None:
    """These servers have a hostname: one answers in JSON, one has no sessions, one uses the SDK 1.x."""
    agents.enforce(tools("at-server", backend(server), {"writer": ["add", "count"]}))
    agents.forget()
    writer = agents.agent("writer", server, sdk)
    assert writer.tools() == ["add", "count"]
    assert writer.call("add", a=1, b=2) == "maths 3"
    assert writer.call("count", to=3) == "counted"
    with pytest.raises(Denied, match=r"^forbidden$"):
        writer.call("mul", a=1, b=2)
    assert writer.call("add", a=1, b=3) == "maths 4"
    with pytest.raises(Denied, match=r"^forbidden$"):
        agents.agent("reader", server, sdk)
    assert {call.partition("/")[2] for call in agents.called} == {"add", "count"}
