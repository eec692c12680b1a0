"""MCP servers of the official SDK, 1.x or 2.x: `python mcp_servers.py LOG KIND:PORT...`.

    - maths       add, sub, mul, long (a long answer), count (reports progress), wait (until it is cancelled),
                  whoami (asks the client's user), dream (asks the client's model)
    - notes       add, read, wipe
    - batches     not from the SDK: lists `add` and `wipe` for every message, also of a batch, with status 201
    - ...-json    the same, with answers in JSON;   ...-stateless   the same, without sessions

LOG gets a line of JSON for every HTTP request: the server, the HTTP method, the method and the tool of the
message, and the header `authorization`. The program runs with only the SDK, so it imports no module of Eastgate.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import json
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from pydantic import BaseModel

MODERN = not importlib.metadata.version("mcp").startswith("1.")
_server: Any = importlib.import_module("mcp.server.mcpserver" if MODERN else "mcp.server.fastmcp")
_types: Any = importlib.import_module("mcp_types" if MODERN else "mcp.types")
_security: Any = importlib.import_module("mcp.server.transport_security")
Context: Any = _server.Context


class Named(BaseModel):
    name: str


def _maths(tool: Callable[[], Callable[[Any], Any]]) -> None:
    @tool()
    def add(a: int, b: int) -> str:
        return f"maths {a + b}"

    @tool()
    def sub(a: int, b: int) -> str:
        return f"maths {a - b}"

    @tool()
    def mul(a: int, b: int) -> str:
        return f"maths {a * b}"

    @tool()
    def long(size: int) -> str:
        return "x" * size

    @tool()
    async def count(to: int, ctx: Context) -> str:
        for number in range(to):
            await ctx.report_progress(number, to)
            await asyncio.sleep(0.02)
        return "counted"

    @tool()
    async def wait(ctx: Context) -> str:
        for number in range(100_000):
            await ctx.report_progress(number)
            await asyncio.sleep(0.05)
        return "waited"

    @tool()
    async def whoami(ctx: Context) -> str:
        told = await ctx.elicit("Who are you?", Named)
        return str(told.data.name) if told.action == "accept" else "nobody"

    @tool()
    async def dream(ctx: Context) -> str:
        asked = _types.SamplingMessage(role="user", content=_types.TextContent(type="text", text="dream"))
        with warnings.catch_warnings(action="ignore"):
            told = await ctx.session.create_message([asked], max_tokens=10)
        return str(told.content.text)


def _notes(tool: Callable[[], Callable[[Any], Any]]) -> None:
    @tool()
    def add(a: int, b: int) -> str:
        return f"notes {a} {b}"

    @tool()
    def read() -> str:
        return "a note"

    @tool()
    def wipe() -> str:
        return "wiped"


_TOOLS = {"maths": _maths, "notes": _notes}


async def _batches(_scope: Any, receive: Any, send: Any) -> None:
    body = b""
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message["more_body"]:
            break
    asked = json.loads(body)
    result = {"tools": [{"name": "add", "inputSchema": {}}, {"name": "wipe", "inputSchema": {}}]}
    answers = [
        {"jsonrpc": "2.0", "id": each["id"], "result": result}
        for each in (asked if isinstance(asked, list) else [asked])
    ]
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send(
        {"type": "http.response.body", "body": json.dumps(answers if isinstance(asked, list) else answers[0]).encode()}
    )


def _application(kind: str) -> Any:
    if kind == "batches":
        return _batches
    name, *how = kind.split("-")
    options: dict[str, Any] = {
        "json_response": "json" in how,
        "stateless_http": "stateless" in how,
        "transport_security": _security.TransportSecuritySettings(enable_dns_rebinding_protection=False),
    }
    server = _server.MCPServer(name) if MODERN else _server.FastMCP(name, **options)
    _TOOLS[name](server.tool)
    return server.streamable_http_app(**options) if MODERN else server.streamable_http_app()


def _logged(application: Any, kind: str, log: Path) -> Any:
    async def call(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        if scope["type"] == "http" and scope["method"] != "POST":
            _write(log, kind, scope, body)

        async def received() -> Any:
            nonlocal body
            message = await receive()
            if message["type"] == "http.request" and scope["method"] == "POST":
                body += message.get("body", b"")
                if not message.get("more_body"):
                    _write(log, kind, scope, body)
            return message

        await application(scope, received if scope["type"] == "http" else receive, send)

    return call


def _write(log: Path, kind: str, scope: Any, body: bytes) -> None:
    try:
        read = json.loads(body)
    except ValueError:
        read = None
    message = read if isinstance(read, dict) else {}
    name = (message.get("params") or {}).get("name")
    line = {"server": kind, "http": scope["method"], "method": message.get("method"), "tool": name}
    line["authorization"] = dict(scope["headers"]).get(b"authorization", b"").decode()
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


async def main(log: Path, servers: list[str]) -> None:
    """Serve until the process is stopped."""
    running = []
    for each in servers:
        kind, _, port = each.rpartition(":")
        application = _logged(_application(kind), kind, log)
        config = uvicorn.Config(application, host="127.0.0.1", port=int(port), log_level="error")
        running.append(uvicorn.Server(config).serve())
    await asyncio.gather(*running)


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
