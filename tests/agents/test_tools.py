"""Which agent may call which tool, with the official SDK at both ends."""

from __future__ import annotations

import pytest

from tests.agents.manifests import GATEWAY, backend, tools
from tests.agents.running import SDKS, AgentMesh, Denied, Sdk


@pytest.mark.parametrize("sdk", SDKS, ids=str)
def test_an_agent_sees_and_calls_its_tools_and_no_others(agents: AgentMesh, sdk: Sdk) -> None:
    agents.enforce(
        tools("at-gateway", GATEWAY, {"writer": ["add", "maths/mul", "wipe"], "reader": ["read", "add", "sub"]}),
        tools("at-maths", backend("maths"), {"writer": ["add", "mul", "sub"], "reader": ["sub"]}),
    )
    writer = agents.agent("writer", "maths", sdk)
    assert writer.tools() == ["add", "mul"]
    assert writer.call("add", a=1, b=2) == "maths 3"
    with pytest.raises(Denied) as denied:
        writer.call("sub", a=1, b=2)
    print(denied.value.code, denied.value.message, denied.value.data)
    assert writer.call("mul", a=1, b=2) == "maths 2"
