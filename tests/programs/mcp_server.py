"""A small MCP server for tests: a few tools, in JSON or in server-sent events, of an old version or the newest."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

MODERN, LEGACY = "2026-07-28", "2025-11-25"
_TOOLS = ("add", "echo", "remove")


class McpServer(ThreadingHTTPServer):
    """A server, the messages that have reached it, and the sessions that are open."""

    daemon_threads = True

    def __init__(self, *, modern: bool, events: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.is_modern = modern
        self.sends_events = events
        self.received: list[dict[str, Any]] = []
        self.sessions: set[str] = set()
        self.closed: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def methods(self) -> list[str]:
        """Return the methods of the messages that have arrived."""
        return [message["method"] for message in self.received]


@contextmanager
def mcp_server(*, modern: bool = False, events: bool = False) -> Iterator[McpServer]:
    """Run a server; `events` answers in server-sent events."""
    server = McpServer(modern=modern, events=events)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: McpServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        version = self.headers.get("mcp-protocol-version")
        if version == MODERN and not self.server.is_modern:
            self._answer(400, _error(None, -32000, "Unsupported protocol version"))
            return
        self.server.received.append(message)
        method, session = message["method"], self.headers.get("mcp-session-id")
        if method == "initialize":
            session = secrets.token_hex(16)
            self.server.sessions.add(session)
            self._answer(200, _result(message, {"protocolVersion": LEGACY, "capabilities": {}}), session)
        elif version != MODERN and session not in self.server.sessions:
            self._answer(404, _error(message.get("id"), -32001, "Session not found"))
        elif "id" not in message:
            self._send(202, "application/json", b"")
        else:
            self._answer(200, _answer_to(message), session)

    def do_DELETE(self) -> None:
        session = self.headers.get("mcp-session-id") or ""
        self.server.closed.append(session)
        self.server.sessions.discard(session)
        self._send(200, "application/json", b"")

    def _answer(self, status: int, message: dict[str, Any], session: str | None = None) -> None:
        body = json.dumps(message).encode()
        if self.server.sends_events and status == 200:
            noise = b'event: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\r\n\r\n'
            self._send(status, "text/event-stream", noise + b"data: " + body + b"\r\n\r\n", session)
        else:
            self._send(status, "application/json", body, session)

    def _send(self, status: int, content_type: str, body: bytes, session: str | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        if session is not None:
            self.send_header("mcp-session-id", session)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _answer_to(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params") or {}
    match message["method"]:
        case "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in _TOOLS]
            return _result(message, {"tools": tools})
        case "tools/call" if params.get("name") in _TOOLS:
            given = params.get("arguments") or {}
            text = str(sum(given.values())) if params["name"] == "add" else json.dumps(given)
            return _result(message, {"content": [{"type": "text", "text": text}]})
        case "tools/call":
            return _error(message["id"], -32602, "Unknown tool")
    return _error(message["id"], -32601, "Method not found")


def _result(message: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _error(identifier: object, code: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": text}}
