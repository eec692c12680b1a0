"""The answers that a client gets for denied messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.manifests import GATEWAY, asks, backend, tools
from tests.agents.running import MODERN, AgentMesh, Denied

IDS = ["7", 7, 0, -1, 9007199254740993, 'ä"\\\n', "x" * 1000]


def _call(request_id: object, tool: str = "sub") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": tool}}


@pytest.mark.parametrize("by", ["rules", "authorizer"])
def test_a_denial_is_a_json_rpc_error_with_the_id_of_the_request_that_names_no_policy(
    agents: AgentMesh, by: str
) -> None:
    agents.enforce(
        tools("secret-policy", GATEWAY, {"writer": ["add"]})
        if by == "rules"
        else asks("secret-policy", GATEWAY, "writer", "GRPC")
    )
    agents.behave("deny")
    agents.forget()
    error = {"code": -32001, "message": "forbidden"}
    for request_id in IDS:
        answer = agents.post("writer", "maths", _call(request_id))
        assert answer == (200, {"jsonrpc": "2.0", "id": request_id, "error": error}, "application/json")
    assert agents.arrived == []


@pytest.mark.parametrize("by", ["rules", "authorizer"])
def test_what_is_no_request_is_denied_by_a_status(agents: AgentMesh, by: str) -> None:
    agents.enforce(
        tools("secret-policy", GATEWAY, {"writer": ["add"]})
        if by == "rules"
        else asks("secret-policy", GATEWAY, "writer", "GRPC")
    )
    agents.behave("deny")
    agents.forget()
    notification = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "sub"}}
    for message in (notification, [_call(1), _call(2, "add")]):
        status, body, _ = agents.post("writer", "maths", message)
        assert status == 403
        assert "secret-policy" not in body
    assert agents.arrived == []


def test_a_denial_is_a_plain_status_where_the_setting_says_so(agents: AgentMesh) -> None:
    agents.enforce(tools("some", GATEWAY, {"writer": ["add"]}), mcpDenials="status")
    assert agents.post("writer", "maths", _call(7)) == (403, "forbidden\n", "text/plain")
    agent = agents.agent("writer", "maths", MODERN)
    with pytest.raises(Denied):
        agent.call("sub", a=1, b=2)
    assert agent.call("add", a=1, b=2) == "maths 3"


@pytest.mark.parametrize("batch", [False, True], ids=["message", "batch"])
def test_lists_in_answers_to_batches_and_of_other_statuses_are_filtered(agents: AgentMesh, batch: bool) -> None:
    agents.enforce(tools("some", backend("batches"), {"writer": ["add"]}))
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    status, answer, _ = agents.post("writer", "batches", [asked, {**asked, "id": 2}] if batch else asked)
    assert status == 201
    for each in answer if batch else [answer]:
        assert [tool["name"] for tool in each["result"]["tools"]] == ["add"]
