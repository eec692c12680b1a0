"""Requests to MCP servers: their messages, and requests with ambiguous messages."""

from __future__ import annotations

import gzip

import pytest

from eastgate.reading.mcp.messages import BadMessage, Message, MessageKind, MessageProblem
from eastgate.reading.mcp.requests import read_request

BODY = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}'
JSON = ("content-type", "application/json")
CALL = (Message("tools/call", "add", 1, MessageKind.REQUEST),)

Headers = list[tuple[str, str]]

READABLE: list[tuple[str, Headers, bytes, tuple[Message, ...]]] = [
    ("POST", [JSON], BODY, CALL),
    ("POST", [("content-type", "Application/JSON;charset=UTF-8"), ("accept", "*/*")], BODY, CALL),
    ("POST", [("content-type", 'application/json; charset="utf-8"')], BODY, CALL),
    ("POST", [JSON, ("mcp-method", "tools/call"), ("mcp-name", "add")], BODY, CALL),
    ("POST", [JSON, ("mcp-name", "=?base64?YWRk?=")], BODY, CALL),
    ("POST", [JSON], b"[" + BODY + b"," + BODY + b"]", CALL * 2),
    ("GET", [("accept", "text/event-stream"), JSON, ("mcp-session-id", "x")], b"", ()),
    ("DELETE", [JSON, ("mcp-session-id", "x")], b"", ()),
]

REFUSED: list[tuple[str, Headers, bytes, MessageProblem]] = [
    ("PUT", [JSON], BODY, MessageProblem.HTTP_METHOD),
    ("post", [JSON], BODY, MessageProblem.HTTP_METHOD),
    ("OPTIONS", [], b"", MessageProblem.HTTP_METHOD),
    ("GET", [("x-http-method-override", "POST")], b"", MessageProblem.HTTP_METHOD),
    ("POST", [JSON, ("x-http-method", "")], BODY, MessageProblem.HTTP_METHOD),
    ("POST", [JSON, ("x-method-override", "PUT")], BODY, MessageProblem.HTTP_METHOD),
    ("GET", [JSON], BODY, MessageProblem.UNEXPECTED_BODY),
    ("DELETE", [JSON], b" ", MessageProblem.UNEXPECTED_BODY),
    ("POST", [], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [JSON, JSON], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [("content-type", "")], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [("content-type", "text/plain")], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [("content-type", "application/json-rpc")], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [("content-type", "application/json,text/plain")], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [("content-type", "application/json ,text/plain")], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [("content-type", "application/json; charset=utf-16")], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [("content-type", "application/json; charset=utf-8, text/plain")], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [("content-type", 'application/json; charset="utf-8')], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [("content-type", "application/json;x")], BODY, MessageProblem.CONTENT_TYPE),
    ("POST", [JSON, ("content-encoding", "gzip")], gzip.compress(BODY), MessageProblem.CONTENT_ENCODING),
    ("POST", [JSON, ("content-encoding", "identity")], BODY, MessageProblem.CONTENT_ENCODING),
    ("POST", [JSON], gzip.compress(BODY), MessageProblem.ENCODING),
    ("POST", [JSON], b"", MessageProblem.SYNTAX),
    ("POST", [JSON, ("mcp-method", "tools/list")], BODY, MessageProblem.HEADERS),
    ("POST", [JSON, ("mcp-name", "rm")], BODY, MessageProblem.HEADERS),
    ("POST", [JSON, ("mcp-name", "=?base64?YWRl?=")], BODY, MessageProblem.HEADERS),
    ("POST", [JSON, ("mcp-name", "=?base64?add?=")], BODY, MessageProblem.HEADERS),
    ("POST", [JSON, ("mcp-name", "=?base64?=")], BODY, MessageProblem.HEADERS),
    ("POST", [JSON, ("mcp-name", "add"), ("mcp-name", "add")], BODY, MessageProblem.HEADERS),
    ("POST", [JSON, ("mcp-method", "tools/call")], b"[" + BODY + b"," + BODY + b"]", MessageProblem.HEADERS),
    ("GET", [("mcp-method", "tools/call")], b"", MessageProblem.HEADERS),
]


@pytest.mark.parametrize(("method", "headers", "body", "messages"), READABLE)
def test_a_request_is_read(method: str, headers: Headers, body: bytes, messages: tuple[Message, ...]) -> None:
    assert read_request(method, headers, body) == messages
    assert read_request(method, [(name.title(), value) for name, value in headers], body) == messages


@pytest.mark.parametrize(("method", "headers", "body", "problem"), REFUSED, ids=range(len(REFUSED)))
def test_a_request_in_doubt_is_refused(method: str, headers: Headers, body: bytes, problem: MessageProblem) -> None:
    with pytest.raises(BadMessage) as refused:
        read_request(method, headers, body)
    assert refused.value.problem is problem
