"""A small HTTP/1 server for checks: bounded in everything, and no slower than it must be.

Requests of one connection are answered in order. What cannot be read for certain is refused, and the connection closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import httptools

from eastgate.records import dataclass

__all__ = ["Handler", "HttpLimits", "HttpProtocol", "HttpServer", "ServedRequest", "ServedResponse"]

_LOG = logging.getLogger(__name__)
_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_MOST_HEADERS: Final = 256
_LOOK: Final = 1.0  # seconds between looks at connections that take too long
_WITHOUT_BODY: Final = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What one client may take: bytes of the head and of the body, seconds for a request to arrive, connections."""

    head: int = 64 * 1024
    body: int = 1024 * 1024
    seconds: float = 10.0
    idle: float = 120.0
    connections: int = 1024


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """A request. Names of headers are in lower case; they come in order, and may repeat."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    peer: str | None

    def values(self, name: str) -> list[str]:
        """Return all values of a header."""
        return [value for key, value in self.headers if key == name]


@dataclass(frozen=True, slots=True)
class ServedResponse:
    """A response. Its length and whether the connection stays are added."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


Handler = Callable[[ServedRequest], ServedResponse | Awaitable[ServedResponse]]


class HttpServer:
    """The connections of one handler, on one event loop."""

    def __init__(self, handler: Handler, limits: HttpLimits | None = None) -> None:
        self.handler = handler
        self.limits = limits or HttpLimits()
        self.connections: set[HttpProtocol] = set()
        self.draining = False
        self._timer: asyncio.TimerHandle | None = None

    def protocol(self) -> HttpProtocol:
        """Return the protocol of a new connection."""
        return HttpProtocol(self)

    def add(self, connection: HttpProtocol) -> None:
        """Take a new connection, and look from time to time whether it takes too long."""
        self.connections.add(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_LOOK, self._look) if self.connections else None
        for connection in tuple(self.connections):
            connection.look_at_time(loop.time())

    async def drain(self, grace: float) -> None:
        """Close connections that nobody waits on, and the others once they are answered; all after so many seconds."""
        self.draining = True
        for connection in tuple(self.connections):
            connection.close_when_idle()
        loop = asyncio.get_running_loop()
        end = loop.time() + grace
        while self.connections and loop.time() < end:
            await asyncio.sleep(0.01)
        for connection in tuple(self.connections):
            connection.abort()


class HttpProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._limits = server.limits
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._peer: str | None = None
        self._loop = asyncio.get_running_loop()
        self._abort_at: float | None = None
        self._answering: asyncio.Task[None] | None = None
        self._waiting: list[tuple[ServedRequest, bool]] = []
        self._is_open = True
        self._begin()

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - it is a stream
        self._transport = transport
        name = transport.get_extra_info("peername")
        self._peer = name[0] if isinstance(name, tuple) and name else None
        if len(self._server.connections) >= self._limits.connections or self._server.draining:
            self._refuse(503)
            return
        self._server.add(self)
        self._allow(self._limits.idle)

    def connection_lost(self, _error: Exception | None) -> None:
        self._is_open = False
        self._server.connections.discard(self)
        if self._answering is not None:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        if not self._is_open:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400)
        except httptools.HttpParserError:
            self._refuse(400)

    def eof_received(self) -> bool:
        return self._answering is not None  # it may wait for its last answer

    def pause_writing(self) -> None:
        self._read(paused=True)

    def resume_writing(self) -> None:
        if self._answering is None:
            self._read(paused=False)

    def close_when_idle(self) -> None:
        """Close now where nothing is being answered; else the answer says that it is the last."""
        if self._answering is None and self._transport is not None:
            self._transport.close()

    def look_at_time(self, now: float) -> None:
        """Close where what has to come next takes too long."""
        if self._abort_at is not None and now > self._abort_at:
            self.abort()

    def abort(self) -> None:
        """Close whatever is open."""
        if self._transport is not None:
            self._transport.abort()

    # What the parser calls

    def _begin(self) -> None:
        self._target = bytearray()
        self._headers: list[tuple[str, str]] = []
        self._body = bytearray()
        self._head = 0

    def on_message_begin(self) -> None:
        """Start a request."""
        self._begin()
        self._allow(self._limits.seconds)

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        self._target += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._count(len(name) + len(value))
        self._headers.append((name.decode("latin-1").lower(), value.decode("utf-8", "replace").strip(" \t")))
        if len(self._headers) > _MOST_HEADERS:
            self._refuse(431)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._body += body
        if len(self._body) > self._limits.body:
            self._refuse(413)

    def on_message_complete(self) -> None:
        """Answer the request, after those before it."""
        if not self._is_open:
            return
        request = ServedRequest(
            self._parser.get_method().decode("latin-1"),
            self._target.decode("utf-8", "replace"),
            self._parser.get_http_version(),
            tuple(self._headers),
            bytes(self._body),
            self._peer,
        )
        stays = bool(self._parser.should_keep_alive()) and not self._server.draining
        self._abort_at = None
        if self._answering is not None:
            self._waiting.append((request, stays))
            self._read(paused=True)
            return
        self._answer(request, stays)

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > self._limits.head:
            self._refuse(431)

    # Answers

    def _answer(self, request: ServedRequest, stays: bool) -> None:
        try:
            response = self._server.handler(request)
        except Exception:
            _LOG.exception("a request could not be answered")
            response = ServedResponse(500)
        bare = request.method == "HEAD"
        if isinstance(response, ServedResponse):
            self._write(response, stays, bare=bare)
        else:
            self._answering = asyncio.ensure_future(self._answer_later(response, stays, bare))

    async def _answer_later(self, coming: Awaitable[ServedResponse], stays: bool, bare: bool) -> None:
        try:
            response = await coming
        except Exception:
            _LOG.exception("a request could not be answered")
            response = ServedResponse(500)
        self._answering = None
        self._write(response, stays and not self._server.draining, bare=bare)
        self._answer_waiting()

    def _answer_waiting(self) -> None:
        while self._waiting and self._is_open:
            self._answer(*self._waiting.pop(0))
            if self._answering is not None:
                return
        self._read(paused=False)

    def _write(self, response: ServedResponse, stays: bool, *, bare: bool = False) -> None:
        """Write a response; `bare`: without its body, which nobody would read as one."""
        if self._transport is None or not self._is_open:
            return
        body = b"" if bare or response.status in _WITHOUT_BODY else response.body
        line = _LINES.get(response.status) or f"HTTP/1.1 {response.status} \r\n".encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in response.headers)
        closing = "" if stays else "connection: close\r\n"
        end = f"{head}{closing}content-length: {len(body)}\r\n\r\n"
        self._transport.write(line + end.encode("utf-8", "replace") + body)
        if stays:
            self._allow(self._limits.idle)
        else:
            self._is_open = False
            self._transport.close()

    def _refuse(self, status: int) -> None:
        """Answer what cannot be read, and close."""
        if self._is_open:
            self._write(ServedResponse(status), stays=False)

    def _read(self, *, paused: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if paused and transport.is_reading():
            transport.pause_reading()
        elif not paused and not transport.is_reading():
            transport.resume_reading()

    def _allow(self, seconds: float) -> None:
        """Give the client so many seconds for what has to come next."""
        self._abort_at = self._loop.time() + seconds
