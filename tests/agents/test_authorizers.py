"""External authorizers: each request asks them once, and no faulty authorizer makes a gateway allow a request."""

from __future__ import annotations

import time

import pytest

from tests.agents.manifests import GATEWAY, asks, backend, denied, tools
from tests.agents.running import MODERN, OLD, SDKS, AgentMesh, Denied, Sdk
from tests.programs.agent_authorizer import SECRET

PROTOCOLS = ("GRPC", "HTTP")


@pytest.mark.parametrize("sdk", SDKS, ids=str)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_authorizer_decides_by_the_arguments_of_a_call(agents: AgentMesh, protocol: str, sdk: Sdk) -> None:
    agents.enforce(asks("ask", backend("maths"), "writer", protocol, body=True))
    agents.behave("small")
    agents.forget()
    agent = agents.agent("writer", "maths", sdk)
    assert len(agent.tools()) == 8
    assert agent.call("add", a=1, b=2) == "maths 3"
    with pytest.raises(Denied, match=r"^forbidden$"):
        agent.call("add", a=1000, b=2)
    assert agents.called == ["maths/add"]
    assert [tool for _, tool in agents.asked_tools] == ["add", "add"]
    principals = {asked["principal"] for asked in agents.asked}
    assert principals == {"spiffe://cluster.local/ns/prod/sa/writer"}


def test_an_authorizer_is_asked_about_matching_sources_only(agents: AgentMesh) -> None:
    agents.enforce(asks("ask", GATEWAY, "writer", "GRPC"))
    agents.behave("deny")
    agents.forget()
    reader = agents.agent("reader", "maths")
    assert reader.call("add", a=1, b=2) == "maths 3"
    assert agents.asked == []
    with pytest.raises(Denied):
        agents.agent("writer", "maths")


@pytest.mark.parametrize("sdk", [MODERN, OLD], ids=str)
def test_the_authorizer_of_a_backend_gets_no_request_that_the_gateway_denies(agents: AgentMesh, sdk: Sdk) -> None:
    at_backend = asks("ask-backend", backend("maths"), "writer", "HTTP", body=True)
    agents.enforce(
        tools("some", GATEWAY, {"writer": ["add", "mul"]}), denied("not-mul", GATEWAY, {"writer": ["mul"]}), at_backend
    )
    agent = agents.agent("writer", "maths", sdk)
    agents.forget()
    for tool in ("sub", "mul"):
        with pytest.raises(Denied):
            agent.call(tool, a=1, b=2)
    assert agents.asked_tools == []
    assert agent.call("add", a=1, b=2) == "maths 3"
    assert agents.asked_tools == [("HTTP", "add")]
    agents.enforce(asks("ask-gateway", GATEWAY, "writer", "GRPC", body=True), at_backend)
    agents.forget()
    agents.behave("small")
    with pytest.raises(Denied):
        agent.call("add", a=1000, b=2)
    assert agents.asked_tools == [("gRPC", "add")]
    agents.forget()
    assert agent.call("add", a=1, b=2) == "maths 3"
    assert agents.asked_tools == [("gRPC", "add"), ("HTTP", "add")]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("behaviour", ["deny", "hang-up", "garbage", "huge", "contradict", "steer"])
def test_an_authorizer_that_breaks_or_lies_allows_no_request(agents: AgentMesh, behaviour: str, protocol: str) -> None:
    agents.enforce(asks("ask", GATEWAY, "writer", protocol))
    sessions = {sdk: agents.agent("writer", "maths", sdk) for sdk in (MODERN, OLD)}
    agents.behave(behaviour)
    agents.forget()
    for agent in sessions.values():
        if (behaviour, protocol) == ("steer", "HTTP"):  # a header that it may not set does not arrive
            assert agent.call("add", a=1, b=2) == "maths 3"
            continue
        with pytest.raises(Denied) as raised:
            agent.call("add", a=1, b=2)
        assert (raised.value.code, raised.value.message, raised.value.data) == (-32001, "forbidden", None)
        assert SECRET not in str(raised.value)
    assert {each["server"] for each in agents.arrived} <= {"maths"}
    if (behaviour, protocol) != ("steer", "HTTP"):
        assert agents.called == []
    agents.behave("allow")
    for agent in sessions.values():
        assert agent.call("add", a=1, b=2) == "maths 3", "the session goes on"


def test_an_authorizer_that_is_slow_allows_no_request(agents: AgentMesh) -> None:
    agents.enforce(asks("ask-grpc", GATEWAY, "writer", "GRPC"), asks("ask-http", GATEWAY, "reader", "HTTP"))
    sessions = [agents.agent(account, "maths", sdk) for account in ("writer", "reader") for sdk in (MODERN, OLD)]
    agents.behave("slow")
    agents.forget()
    answers = [agent.start("add", a=1, b=2) for agent in sessions]
    for answer in answers:
        with pytest.raises(Denied, match=r"^forbidden$"):
            answer.result()
    assert agents.called == []


def test_an_authorizer_that_is_down_allows_no_request_until_it_is_back(agents: AgentMesh) -> None:
    agents.enforce(asks("ask-grpc", GATEWAY, "writer", "GRPC"), asks("ask-http", GATEWAY, "reader", "HTTP"))
    sessions = [agents.agent(account, "maths", sdk) for account in ("writer", "reader") for sdk in (MODERN, OLD)]
    agents.stop_authorizer()
    agents.forget()
    try:
        for agent in sessions:
            with pytest.raises(Denied, match=r"^forbidden$"):
                agent.call("add", a=1, b=2)
        assert agents.called == []
    finally:
        agents.start_authorizer()
    for agent in sessions:
        while True:
            try:
                assert agent.call("add", a=1, b=2) == "maths 3"
                break
            except Denied:
                time.sleep(0.2)
