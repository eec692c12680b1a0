"""The application of a workload that has none: it tells callers of HTTP what arrived, and echoes all other bytes.

It listens on a unix socket, so that nothing but the sidecar of its workload reaches it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import TypeVar

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.local.machine.http1 import Http1Server, Source
from eastgate.local.machine.serving import SocketServer

_REQUEST_LINE = regex(rb"(?:\r?\n)*[!#$%&'*+\-.^_`|~0-9A-Za-z]+ [^\r\n]+ HTTP/1\.[0-9]\r?\n")
_METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"PATCH ", b"OPTIONS ", b"TRACE ", b"CONNECT ")
_LONGEST_FIRST_LINE = 64 * 1024
_TICK = b"tick\n"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EchoTimes:
    """The seconds that a connection may be silent, in each of its states."""

    idle: float = 3600.0
    head: float = 30.0
    sniff: float = 1.0
    write: float = 30.0


@dataclass(frozen=True, slots=True)
class EchoOptions:
    """Other behaviours, for tests: to speak first, and to send something every so many seconds. Both without HTTP."""

    greeting: bytes = b""
    push_every: float | None = None
    times: EchoTimes = EchoTimes()

    @property
    def raw(self) -> bool:
        """Return whether all connections are bytes to be echoed."""
        return bool(self.greeting) or self.push_every is not None


class EchoServer(SocketServer):
    """The application behind one port of one workload. It counts its connections and requests."""

    def __init__(self, path: str, workload: str, port: int, options: EchoOptions | None = None) -> None:
        super().__init__(path, backlog=512)
        self.workload = workload
        self.port = port
        self.requests = 0
        self._options = options or EchoOptions()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests, or echo bytes."""
        source = Source(reader)
        try:
            if self._options.raw or not await self._is_http(source):
                await self._echo(source, writer)
            else:
                server = Http1Server(source, writer, self._options.times.head)
                while await self._answer(server, source):
                    pass
            writer.close()
            await _within(writer.wait_closed(), self._options.times.write)
        except OSError:
            pass  # the peer is gone, or as good as gone
        finally:
            writer.transport.abort()

    async def _is_http(self, source: Source) -> bool:
        """Return whether a request comes. Bytes that may be the beginning of one are waited for, others never."""
        times = self._options.times
        await _within(source.more(), times.idle)
        while len(source.seen) < _LONGEST_FIRST_LINE:
            first = bytes(source.seen).lstrip(b"\r\n")
            if _REQUEST_LINE.match(source.seen):
                return True
            if b"\n" in first:
                return False
            method = first.startswith(_METHODS)
            if not method and not any(name.startswith(first) for name in _METHODS):
                return False
            try:
                if not await _within(source.more(), times.head if method else times.sniff):
                    return False
            except TimeoutError:
                return False
        return bytes(source.seen).startswith(_METHODS)  # too long, which is answered as such

    async def _answer(self, server: Http1Server, source: Source) -> bool:
        """Answer one request; return whether another one may follow."""
        if not source.seen and not await _within(source.more(), self._options.times.idle):
            return False
        arrived = await server.next_request()
        if arrived is None:
            return False
        request, size = arrived
        self.requests += 1
        about = {"workload": self.workload, "port": self.port, "method": request.method, "path": request.target}
        body = json.dumps({**about, "headers": request.by_name(), "body_bytes": size}).encode() + b"\n"
        return await server.respond(200, "application/json", body)

    async def _echo(self, source: Source, writer: asyncio.StreamWriter) -> None:
        if self._options.greeting:
            await self._send(writer, self._options.greeting)
        pushing = asyncio.create_task(self._push(writer))
        try:
            while data := await _within(source.take(), self._options.times.idle):
                await self._send(writer, data)
        finally:
            pushing.cancel()
            await asyncio.wait([pushing])

    async def _push(self, writer: asyncio.StreamWriter) -> None:
        while self._options.push_every is not None:
            await asyncio.sleep(self._options.push_every)
            try:
                await self._send(writer, _TICK)
            except OSError:
                return

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        await _within(writer.drain(), self._options.times.write)


async def _within(awaited: Awaitable[T], seconds: float) -> T:
    """Await something for so many seconds. `wait_for` of Python 3.11 may swallow a cancellation."""
    async with asyncio.timeout(seconds):
        return await awaited
