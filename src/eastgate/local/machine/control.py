"""The control interface of a running mesh: one JSON object per line over a unix socket in its private folder.

    {"ask": NAME, "arguments": {...}}  is answered with
    {"answer": {...}}                  or
    {"item": {...}} ... {"end": true}  by a handler that yields many, or
    {"error": "..."}

The folder is private already. The user of the peer is checked as well, so that a mistake there is not fatal.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, cast

from eastgate.local.machine.rundir import LocalMeshError

# A server on a unix socket, which serves each connection in a task of its own.


class SocketServer(ABC):
    """Listens on a socket for this user only, until it is stopped. `limit` is the longest line in bytes."""

    def __init__(self, path: str, *, limit: int = 64 * 1024) -> None:
        self.path = path
        self.connections = 0
        self._limit = limit
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @abstractmethod
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, and close it."""

    async def start(self) -> None:
        """Start to listen."""
        self._server = await asyncio.start_unix_server(self._accept, self.path, limit=self._limit)
        os.chmod(self.path, 0o600)

    async def stop(self) -> None:
        """Stop listening, and cancel open connections."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self.serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)


Message = dict[str, Any]
Handler = Callable[[Message], Awaitable[Message | AsyncIterator[Message]] | AsyncIterator[Message]]

_MAX_REQUEST_BYTES = 1024 * 1024
_MAX_ANSWER_BYTES = 32 * 1024 * 1024
_WRITE_TIMEOUT_SECONDS = 30.0


class ControlFailed(LocalMeshError):  # noqa: N818 - the name is an event
    """The mesh refused the request, or did not answer."""


class ControlServer(SocketServer):
    """Answers the requests of this user, and of root, until it is stopped."""

    def __init__(self, path: str, handlers: Mapping[str, Handler]) -> None:
        super().__init__(path, limit=_MAX_REQUEST_BYTES)
        self._handlers = handlers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            if not _is_permitted(writer):
                await _write(writer, {"error": "this mesh belongs to another user"})
                return
            while line := await reader.readline():
                await self._handle(line, reader, writer)
        except ValueError:  # the line is longer than the limit of the stream
            with contextlib.suppress(OSError):
                await _write(writer, {"error": f"a request has at most {_MAX_REQUEST_BYTES} bytes"})
        except OSError:
            pass  # the peer is gone, or does not read
        finally:
            writer.close()

    async def _handle(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            handler, arguments = self._parse(line)
            result = handler(arguments)
            answer = await result if isinstance(result, Awaitable) else result
        except Exception as error:
            await _write(writer, _describe_error(error))
            return
        if isinstance(answer, dict):
            await _write(writer, {"answer": answer})
        else:
            await _run_until_closed(reader, _stream(writer, answer))

    def _parse(self, line: bytes) -> tuple[Handler, Message]:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            raise ControlFailed("a request is one JSON object on one line") from None
        name = request.get("ask") if isinstance(request, dict) else None
        arguments = request.get("arguments", {}) if isinstance(request, dict) else None
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise ControlFailed('a request is {"ask": NAME, "arguments": {...}}')
        if name not in self._handlers:
            handlers = ", ".join(f"`{handler}`" for handler in sorted(self._handlers))
            raise ControlFailed(f"this mesh does not know `{name[:80]}`", help=f"it knows {handlers}")
        return self._handlers[name], arguments


class ControlClient:
    """Sends requests to a running mesh, over a new connection each time."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def ask(self, name: str, /, **arguments: Any) -> Message:
        """Return the single answer to a request."""
        async with contextlib.aclosing(self._exchange(name, arguments)) as messages:
            async for message in messages:
                if "answer" in message:
                    return cast(Message, message["answer"])
                raise ControlFailed(f"the mesh gives many answers to `{name}`")
        raise ControlFailed("the mesh stopped before it answered")

    async def stream(self, name: str, /, **arguments: Any) -> AsyncGenerator[Message, None]:
        """Yield the answers to a request with many, until the mesh has no more or stops."""
        async with contextlib.aclosing(self._exchange(name, arguments)) as messages:
            async for message in messages:
                if "item" not in message:
                    return
                yield message["item"]

    async def _exchange(self, name: str, arguments: Message) -> AsyncGenerator[Message, None]:
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=_MAX_ANSWER_BYTES)
        except OSError as error:
            raise ControlFailed(f"the mesh does not answer: {error.strerror or error}") from None
        try:
            await _write(writer, {"ask": name, "arguments": arguments})
            while line := await reader.readline():
                message = json.loads(line)
                if "error" in message:
                    raise ControlFailed(message["error"])
                yield message
        except (OSError, ValueError) as error:
            raise ControlFailed(f"the mesh does not answer: {error}") from None
        finally:
            writer.close()


def _is_permitted(writer: asyncio.StreamWriter) -> bool:
    peer = writer.get_extra_info("socket")
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return uid in (0, os.geteuid())


async def _write(writer: asyncio.StreamWriter, message: Message) -> None:
    line = json.dumps(message).encode() + b"\n"
    if len(line) > _MAX_ANSWER_BYTES:
        line = json.dumps({"error": f"the answer has more than {_MAX_ANSWER_BYTES} bytes"}).encode() + b"\n"
    writer.write(line)
    await asyncio.wait_for(writer.drain(), _WRITE_TIMEOUT_SECONDS)


async def _stream(writer: asyncio.StreamWriter, items: AsyncIterator[Message]) -> None:
    try:
        async for item in items:
            await _write(writer, {"item": item})
        last: Message = {"end": True}
    except OSError:
        raise
    except Exception as error:
        last = _describe_error(error)
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()
    await _write(writer, last)


def _describe_error(error: Exception) -> Message:
    """Return the error as a message. An unexpected error is also reported in the output of the mesh."""
    if isinstance(error, LocalMeshError):
        return {"error": str(error)}
    context = {"message": "a command of the control interface failed", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)
    return {"error": f"{type(error).__name__}: {error}"}


async def _run_until_closed(reader: asyncio.StreamReader, work: Awaitable[None]) -> None:
    """Run `work` until the peer closes: the handler of a stream must end when its client has left."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait([working, gone], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ConnectionResetError
        working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.wait([working, gone])
