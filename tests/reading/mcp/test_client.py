"""Conversations with servers of the newest version and of older ones, and with proxies that refuse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from eastgate.reading.mcp.client import (
    CallOutcome,
    Conversation,
    Post,
    PostAnswer,
    RpcError,
    converse,
    list_tools,
    make_request,
)
from eastgate.reading.mcp.messages import BadMessage, read_messages
from eastgate.reading.strict_json import Json

Handler = Callable[[Post, Any], PostAnswer]


def _json(status: int, value: Any, **headers: str) -> PostAnswer:
    named = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    return PostAnswer(status, (("Content-Type", "application/json"), *named), json.dumps(value).encode())


def _events(*values: Any) -> PostAnswer:
    body = ": ping\r\n\r\n" + "".join(f"event: message\r\ndata: {json.dumps(value)}\r\n\r\n" for value in values)
    return PostAnswer(200, (("content-type", "text/event-stream"),), body.encode())


def _error(status: int, code: int, **members: Any) -> PostAnswer:
    return _json(status, {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "no", **members}})


def _result(value: Any, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": value["id"], "result": result}


class Server:
    """Records the requests, and answers them."""

    def __init__(self, handle: Handler) -> None:
        self.handle = handle
        self.posts: list[Post] = []

    async def send(self, post: Post) -> PostAnswer:
        self.posts.append(post)
        return self.handle(post, json.loads(post.body) if post.body else None)

    @property
    def methods(self) -> list[str]:
        return [json.loads(post.body)["method"] if post.body else post.method for post in self.posts]


def _converse(server: Server, conversation: Conversation) -> CallOutcome:
    return asyncio.run(converse(conversation, server.send))


def call_tool(name: str, arguments: dict[str, Json], version: str | None = None) -> Conversation:
    return make_request("tools/call", {"name": name, "arguments": arguments}, version)


def _modern(_: Post, value: Any) -> PostAnswer:
    return _json(200, _result(value, {"content": []}))


def _legacy(post: Post, value: Any) -> PostAnswer:
    headers = dict(post.headers)
    if value is None:
        return PostAnswer(200, (), b"")
    if value["method"] == "initialize":
        assert "mcp-protocol-version" not in headers
        return _json(200, _result(value, {"protocolVersion": "2025-06-18"}), Mcp_Session_Id="s.1")
    if headers.get("mcp-session-id") != "s.1":
        return _error(400, -32600)
    assert headers["mcp-protocol-version"] == "2025-06-18"
    if "id" not in value:
        return PostAnswer(202, (("content-type", "application/json"),), b"")
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
    return _events(progress, _result(value, {"content": []}))


def test_the_newest_version_needs_one_request() -> None:
    server = Server(_modern)
    outcome = _converse(server, call_tool("ad d\u00e4", {"a": 1}))
    (post,) = server.posts
    assert dict(post.headers) == {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?YWQgZMOk?=",
    }
    params = json.loads(post.body)["params"]
    assert (params["name"], params["arguments"]) == ("ad d\u00e4", {"a": 1})
    assert params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert (outcome.method, outcome.version, outcome.result) == ("tools/call", "2026-07-28", {"content": []})


def test_an_older_server_gets_a_handshake_and_the_end_of_its_session() -> None:
    server = Server(_legacy)
    outcome = _converse(server, call_tool("add", {}))
    assert server.methods == ["tools/call", "initialize", "notifications/initialized", "tools/call", "DELETE"]
    assert (outcome.version, outcome.result) == ("2025-06-18", {"content": []})
    assert dict(server.posts[-1].headers)["mcp-session-id"] == "s.1"


def test_the_filtered_answer_can_be_read_strictly() -> None:
    server = Server(_legacy)
    _converse(server, call_tool("add", {"name": "rm", "x": [None, 1.5]}))
    names = [read_messages(post.body)[0].name for post in server.posts if post.body]
    assert names == ["add", None, None, "add"]


def test_a_version_that_is_given_is_the_only_one() -> None:
    server = Server(_legacy)
    assert _converse(server, call_tool("add", {}, "2026-07-28")).error == RpcError(-32600, "no")
    assert server.methods == ["tools/call"]
    server = Server(_legacy)
    _converse(server, call_tool("add", {}, "2025-06-18"))
    assert server.methods[0] == "initialize"


REFUSALS = [
    (PostAnswer(403, (("content-type", "text/plain"),), b"no"), None),
    (PostAnswer(403, (("content-type", "application/json"),), b"no"), None),
    (_json(403, {"detail": "no"}), None),
    (_json(403, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no"}}), -32001),
    (_json(200, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no"}}), -32001),
    (PostAnswer(503, (), b""), None),
    (_error(400, -32020), -32020),
    (_error(400, -32022, data={"supported": ["2027-01-01"]}), -32022),
    (_error(404, -32601), -32601),
]


@pytest.mark.parametrize(("answer", "code"), REFUSALS)
def test_a_refusal_is_the_outcome(answer: PostAnswer, code: int | None) -> None:
    server = Server(lambda *_: answer)
    outcome = _converse(server, call_tool("add", {}))
    assert server.methods == ["tools/call"]
    assert (outcome.method, outcome.answer, outcome.result) == ("tools/call", answer, None)
    assert (outcome.error and outcome.error.code) == code


MISUNDERSTOOD = [
    PostAnswer(400, (), b""),
    PostAnswer(404, (("content-type", "text/html"),), b"<html>"),
    PostAnswer(405, (), b""),
    _error(400, -32600),
    _error(400, -32022, data={"supported": ["2025-11-25"]}),
]


@pytest.mark.parametrize("answer", MISUNDERSTOOD)
def test_a_server_that_does_not_understand_is_asked_in_the_older_protocol(answer: PostAnswer) -> None:
    server = Server(lambda post, value: answer if len(server.posts) == 1 else _legacy(post, value))
    assert _converse(server, call_tool("add", {})).result == {"content": []}


@pytest.mark.parametrize("refused", ["initialize", "notifications/initialized"])
def test_a_refused_handshake_is_the_outcome(refused: str) -> None:
    def handle(post: Post, value: Any) -> PostAnswer:
        if value is not None and value["method"] == refused:
            return PostAnswer(403, (), b"")
        return _legacy(post, value)

    outcome = _converse(Server(handle), call_tool("add", {}))
    assert (outcome.method, outcome.answer.status) == (refused, 403)


def test_all_pages_of_a_list_are_requested() -> None:
    def handle(_: Post, value: Any) -> PostAnswer:
        cursor = value["params"].get("cursor", 0)
        more = {"nextCursor": cursor + 1} if cursor < 2 else {}
        return _json(200, _result(value, {"tools": [{"name": f"t{cursor}"}], **more}))

    outcome = _converse(Server(handle), list_tools())
    assert outcome.result == {"tools": [{"name": "t0"}, {"name": "t1"}, {"name": "t2"}]}


def test_a_list_without_an_end_is_given_up() -> None:
    server = Server(lambda _, value: _json(200, _result(value, {"tools": [], "nextCursor": "x"})))
    with pytest.raises(BadMessage):
        _converse(server, list_tools())
    assert len(server.posts) < 200


BAD = [
    PostAnswer(200, (("content-type", "application/json"),), b"x"),
    PostAnswer(200, (("content-type", "application/json"),), b'{"id":1,"id":1,"result":{}}'),
    _json(200, {"jsonrpc": "2.0", "id": 2, "result": {}}),
    _json(200, {"jsonrpc": "2.0", "id": 1, "result": []}),
    _json(200, {"jsonrpc": "2.0", "id": 1, "error": {"code": "x"}}),
    _events({"jsonrpc": "2.0", "method": "notifications/progress"}),
]


@pytest.mark.parametrize("answer", BAD)
def test_an_answer_that_is_no_response_raises(answer: PostAnswer) -> None:
    with pytest.raises(BadMessage):
        _converse(Server(lambda *_: answer), call_tool("add", {}))
