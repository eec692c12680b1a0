"""Long calls: streams of progress and of long answers, requests from servers to clients, and the end of streams."""

from __future__ import annotations

import pytest

from eastgate.control.events import Noted
from tests.agents.manifests import GATEWAY, asks, backend, denied, tools
from tests.agents.running import LEGACY, OLD, SDKS, AgentMesh, Denied, PendingResult, Sdk

ALL = ["add", "long", "count", "wait", "whoami", "dream"]


@pytest.mark.parametrize("sdk", SDKS, ids=str)
@pytest.mark.parametrize("asked", [False, True], ids=["decided", "asked"])
def test_progress_and_long_answers_arrive(agents: AgentMesh, sdk: Sdk, asked: bool) -> None:
    asking = (asks("ask", GATEWAY, "writer", "GRPC"),) if asked else ()
    agents.enforce(tools("all", backend("maths"), {"writer": ALL}), *asking)
    agent = agents.agent("writer", "maths", sdk)
    counting = agent.start("count", to=30)
    assert agent.call("add", a=1, b=2) == "maths 3", "while it counts"
    assert counting.result()["text"] == "counted"
    assert counting.progress == list(range(30))
    assert len(agent.call("long", size=400_000)) == 400_000


@pytest.mark.parametrize("sdk", [LEGACY, OLD], ids=str)
def test_a_server_asks_its_client_and_is_answered(agents: AgentMesh, sdk: Sdk) -> None:
    """The newest protocol has no requests from servers."""
    agents.enforce(tools("all", backend("maths"), {"writer": ALL}))
    agent = agents.agent("writer", "maths", sdk)
    assert agent.call("whoami") == "erin"
    assert agent.call("dream") == "a dream of sheep"


@pytest.mark.parametrize("sdk", SDKS, ids=str)
def test_a_tool_that_is_taken_away_is_gone_for_open_sessions(agents: AgentMesh, sdk: Sdk) -> None:
    agents.enforce(tools("some", backend("maths"), {"writer": ["add", "mul"]}))
    agent = agents.agent("writer", "maths", sdk)
    assert agent.tools() == ["add", "mul"]
    assert agent.call("mul", a=2, b=3) == "maths 6"
    agents.enforce(tools("some", backend("maths"), {"writer": ["add"]}))
    agents.forget()
    with pytest.raises(Denied, match=r"^forbidden$"):
        agent.call("mul", a=2, b=3)
    assert agent.tools() == ["add"]
    assert agent.call("add", a=2, b=3) == "maths 5"
    assert agents.called == ["maths/add"]


@pytest.mark.parametrize("sdk", SDKS, ids=str)
@pytest.mark.parametrize("by", ["InlineTools", "Deny"])
@pytest.mark.parametrize("asked", [False, True], ids=["decided", "asked"])
def test_a_call_that_runs_ends_when_its_tool_is_taken_away(agents: AgentMesh, sdk: Sdk, by: str, asked: bool) -> None:
    asking = (asks("ask", GATEWAY, "writer", "GRPC"),) if asked else ()
    everything = tools("some", backend("maths"), {"writer": ["add", "wait"]})
    agents.enforce(everything, *asking)
    agent = agents.agent("writer", "maths", sdk)
    waiting = agent.start("wait")
    assert [waiting.next_progress() for _ in range(3)] == [0, 1, 2]
    events = len(agents.events)
    if by == "Deny":
        agents.enforce(everything, denied("not", GATEWAY, {"writer": ["wait"]}), *asking)
    else:
        agents.enforce(tools("some", backend("maths"), {"writer": ["add"]}), *asking)
    _wait_for_the_end(agents, waiting, sdk)
    noted = [event.message for event in agents.events[events:] if isinstance(event, Noted)]
    assert any("sa:prod/writer" in text and "no longer allowed" in text for text in noted)


def _wait_for_the_end(agents: AgentMesh, waiting: PendingResult, sdk: Sdk) -> None:
    """Wait until a call ends. A client of 1.x does not notice the end: it waits for more data on the stream."""
    if sdk.version > 1:
        with pytest.raises(Denied):
            waiting.result()
        return
    agents.wait_until(lambda: not waiting.has_progress(0.5))
