"""Agents with tokens: servers never see the token, authorizers see it, and both get the identity of the agent."""

from __future__ import annotations

import pytest

from eastgate.cluster.ends import ServiceAccount
from eastgate.control.events import Decided
from eastgate.reports.why.proxies import explain_observation
from tests.agents.manifests import GATEWAY, asks, backend, tools
from tests.agents.running import LEGACY, SDKS, AgentMesh, Denied, Sdk, identity_of, token_of

WRITER = identity_of("writer")


@pytest.mark.parametrize("sdk", SDKS, ids=str)
@pytest.mark.parametrize("host", ["maths", "json", "old"])
def test_no_server_gets_the_token_of_an_agent(agents: AgentMesh, sdk: Sdk, host: str) -> None:
    """Check servers in the mesh and outside. A server with the token could act as the agent at every other server."""
    agents.enforce(tools("some", backend(host), {"writer": ["add"]}))
    agents.forget()
    agent = agents.agent("writer", host, sdk, token=token_of("writer"))
    assert agent.tools() == ["add"]
    assert agent.call("add", a=1, b=2) == "maths 3"
    with pytest.raises(Denied, match=r"^forbidden$"):
        agent.call("mul", a=1, b=2)
    agents.close_agents()
    assert {each["authorization"] for each in agents.arrived} == {""}
    if sdk == LEGACY:
        assert {each["http"] for each in agents.arrived} == {"POST", "GET", "DELETE"}, "streams and ends of sessions"


@pytest.mark.parametrize("protocol", ["GRPC", "HTTP"])
@pytest.mark.parametrize("host", ["maths", "json"])
def test_an_authorizer_gets_token_and_identity_and_may_pass_the_token_on(
    agents: AgentMesh, protocol: str, host: str
) -> None:
    agents.enforce(asks("ask", GATEWAY, "writer", protocol))
    agents.forget()
    token = token_of("writer")
    agent = agents.agent("writer", host, token=token)
    assert agent.call("add", a=1, b=2) == "maths 3"
    assert {each["principal"] for each in agents.asked} == {WRITER}
    assert {each["authorization"] for each in agents.asked} == {f"Bearer {token}"}
    assert {each["authorization"] for each in agents.arrived} == {""}
    agents.behave("pass")
    agents.forget()
    assert agent.call("add", a=1, b=2) == "maths 3"
    assert {each["authorization"] for each in agents.arrived} == {f"Bearer {token}"}


@pytest.mark.parametrize("asked", [False, True], ids=["decided", "asked"])
def test_the_log_has_the_identity_of_a_token_and_why_explains_by_it(agents: AgentMesh, asked: bool) -> None:
    asking = (asks("ask", GATEWAY, "writer", "GRPC"),) if asked else ()
    agents.enforce(tools("some", backend("maths"), {"writer": ["add"]}), *asking)
    before = len(agents.events)
    agent = agents.agent("writer", "maths", token=token_of("writer"))
    assert agent.call("add", a=1, b=2) == "maths 3"

    def observed() -> list[Decided]:
        events = [event for event in agents.events[before:] if isinstance(event, Decided)]
        return [event for event in events if event.observation.tool == "add" and event.observation.destination]

    agents.wait_until(lambda: bool(observed()))
    [event] = observed()
    assert event.observation.peer == WRITER
    explained = explain_observation(event.observation, agents.mesh.enforcement.authority)
    assert explained.decision is not None
    assert explained.decision.question.source == ServiceAccount("prod", "writer")
    if not asked:
        assert (explained.comparison.holds, explained.decision.allowed) == (True, True)
