"""An agent with sessions to MCP servers by the official SDK, 1.x or 2.x. Lines of JSON are its commands.

    {"id": 1, "do": "open", "url": ..., "headers": ..., "mode": ...}   the result names a session; `mode`: for 2.x
    {"id": 2, "do": "tools", "session": ...}                        the names of the tools
    {"id": 3, "do": "call", "session": ..., "tool": ..., "arguments": {...}}
    {"id": 4, "do": "close", "session": ...}

The answer to each is one line with its id and `result` or `error` (`code`, `message`). Before it comes one line with
`progress` for each report. The agent runs with only the SDK installed, so it imports no module of Eastgate.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import itertools
import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

VERSION = importlib.metadata.version("mcp")
MODERN = not VERSION.startswith("1.")
_mcp: Any = importlib.import_module("mcp")
_types: Any = importlib.import_module("mcp_types" if MODERN else "mcp.types")
_http: Any = importlib.import_module("httpx2" if MODERN else "httpx")
_transport: Any = importlib.import_module("mcp.client.streamable_http")


async def _sample(_context: Any, _params: Any) -> Any:
    content = _types.TextContent(type="text", text="a dream of sheep")
    return _types.CreateMessageResult(role="assistant", content=content, model="none")


async def _elicit(_context: Any, _params: Any) -> Any:
    return _types.ElicitResult(action="accept", content={"name": "erin"})


_CALLBACKS = {"sampling_callback": _sample, "elicitation_callback": _elicit}


@asynccontextmanager
async def _connected(url: str, headers: dict[str, str], mode: str) -> AsyncIterator[Any]:
    timeout = _http.Timeout(60, read=300)
    async with _http.AsyncClient(headers=headers, timeout=timeout) as client:
        transport = _transport.streamable_http_client(url, http_client=client)
        if MODERN:
            async with _mcp.Client(transport, mode=mode, cache=None, **_CALLBACKS) as session:
                yield session
        else:
            async with transport as (read, write, _), _mcp.ClientSession(read, write, **_CALLBACKS) as session:
                await session.initialize()
                yield session


class Session:
    """A session that one task opens and closes. `ended` has the reason for its end."""

    def __init__(self, url: str, headers: dict[str, str], mode: str) -> None:
        self.client: Any = None
        self.opened = asyncio.Event()
        self._closing = asyncio.Event()
        self._task = asyncio.create_task(self._run(url, headers, mode))

    async def _run(self, url: str, headers: dict[str, str], mode: str) -> None:
        async with _connected(url, headers, mode) as self.client:
            self.opened.set()
            await self._closing.wait()

    async def until(self, work: Awaitable[Any]) -> Any:
        """Wait for some work. If the session ends first, raise its error."""
        working = asyncio.ensure_future(work)
        await asyncio.wait([working, self._task], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
            self._task.result()
            raise ConnectionError("the session has ended")
        return working.result()

    async def close(self) -> None:
        """Close the session."""
        self._closing.set()
        await self._task


class Agent:
    """The executor of the commands."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._names = map(str, itertools.count())
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Read commands until the input ends."""
        reader = asyncio.StreamReader(limit=1 << 24)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            task = asyncio.create_task(self._answer(json.loads(line)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, told: dict[str, Any]) -> None:
        number = told.pop("id")
        do: Callable[..., Awaitable[Any]] = getattr(self, f"do_{told.pop('do')}")
        try:
            _write({"id": number, "result": await do(number, **told)})
        except BaseException as error:
            _write({"id": number, "error": _described(error)})

    async def do_open(self, _number: int, url: str, headers: dict[str, str], mode: str) -> str:
        session = Session(url, headers, mode)
        await session.until(session.opened.wait())
        name = next(self._names)
        self._sessions[name] = session
        return name

    async def do_tools(self, _number: int, session: str) -> list[str]:
        opened = self._sessions[session]
        listed = await opened.until(opened.client.list_tools())
        return [tool.name for tool in listed.tools]

    async def do_call(self, number: int, session: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        opened = self._sessions[session]

        async def report(progress: float, _total: float | None, _message: str | None) -> None:
            _write({"id": number, "progress": progress})

        result = await opened.until(opened.client.call_tool(tool, arguments, progress_callback=report))
        failed = result.is_error if MODERN else result.isError
        return {"text": "".join(block.text for block in result.content), "failed": bool(failed)}

    async def do_close(self, _number: int, session: str) -> None:
        await self._sessions.pop(session).close()


def _described(error: BaseException) -> dict[str, Any]:
    """Return the JSON-RPC error, or else the first cause."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    told = getattr(error, "error", None)
    if told is None:
        return {"code": None, "message": f"{type(error).__name__}: {error}"}
    return {"code": told.code, "message": told.message, "data": told.data}


def _write(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(Agent().run())
