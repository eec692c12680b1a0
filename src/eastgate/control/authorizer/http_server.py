"""A small and fast HTTP/1 server for checks, with a limit for everything that a client sends.

It answers the requests of one connection in order. It refuses an ambiguous request and closes the connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, cast

import httptools

from eastgate.basics.records import dataclass

_LOG = logging.getLogger(__name__)
_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_MAX_HEADERS: Final = 256
_POLL_SECONDS: Final = 1.0  # between checks for connections that take too long
_WITHOUT_BODY: Final = frozenset({204, 304})
_VERSIONS: Final = ("1.0", "1.1")
_LARGE_BODY_BYTES: Final = 64 * 1024  # a smaller body does not start a check of `bodies`
_MAX_REQUESTS_PER_TURN: Final = 32  # of one connection, before the others have their turn


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits for clients: bytes of the head and of the body, seconds for a request to arrive, and connections in all.

    If no connection is free, the peer with the most connections loses one to a peer with fewer. If the bodies of
    requests without an answer have more than `bodies` bytes, the peer with the most of these loses a connection.
    """

    head: int = 64 * 1024
    body: int = 1024 * 1024
    seconds: float = 10.0
    idle: float = 120.0
    connections: int = 1024
    bodies: int | None = None


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """A request. Header names are in lower case. Headers keep their order, and may repeat."""

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
    """A response. The server adds the content length and the connection header."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


Handler = Callable[[ServedRequest], ServedResponse | Awaitable[ServedResponse]]

Screen = Callable[[str, asyncio.BaseTransport], int | None]
"""A function that returns a status to refuse a request for a target before its body is read, or None to read it."""


class HttpServer:
    """The connections of one handler, on one event loop."""

    def __init__(self, handler: Handler, limits: HttpLimits | None = None, screen: Screen | None = None) -> None:
        self.handler = handler
        self.limits = limits or HttpLimits()
        self.screen = screen
        self.connections: set[HttpProtocol] = set()
        self.draining = False
        self._timer: asyncio.TimerHandle | None = None

    def protocol(self) -> HttpProtocol:
        return HttpProtocol(self)

    def add(self, connection: HttpProtocol) -> bool:
        """Add a new connection and start the timer for late ones. Return False to refuse it."""
        if self.draining or (len(self.connections) >= self.limits.connections and not self._make_room(connection.peer)):
            return False
        self.connections.add(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_POLL_SECONDS, self._abort_late)
        return True

    def _make_room(self, peer: str | None) -> bool:
        """Abort a connection of the peer with the most, if it has two more than `peer`; return whether it did."""
        counted = Counter(connection.peer for connection in self.connections)
        greediest, most = counted.most_common(1)[0]
        if most <= counted[peer] + 1:
            return False
        self._end_one(greediest, lambda connection: not connection.is_answering)
        return True

    def limit_bodies(self, most: int) -> None:
        """Abort the largest request of the peer with the most body bytes, if all bodies have more than `most`."""
        of_peers = Counter[str | None]()
        for connection in self.connections:
            of_peers[connection.peer] += connection.held
        if of_peers.total() > most:
            ((greediest, _),) = of_peers.most_common(1)
            self._end_one(greediest, lambda connection: (not connection.is_answering, connection.held))

    def _end_one(self, peer: str | None, rank: Callable[[HttpProtocol], int | tuple[int, int]]) -> None:
        """Abort the connection of a peer that ranks highest."""
        victim = max((connection for connection in self.connections if connection.peer == peer), key=rank)
        self.connections.discard(victim)
        victim.abort()

    def _abort_late(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_POLL_SECONDS, self._abort_late) if self.connections else None
        for connection in tuple(self.connections):
            connection.abort_if_late(loop.time())

    async def drain(self, grace: float) -> None:
        """Close idle connections at once, and the others after their answer; abort the rest after `grace` seconds."""
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
    """The protocol of one connection."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._limits = server.limits
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport  # from `connection_made` on
        self.peer: str | None = None
        self._loop = asyncio.get_running_loop()
        self._abort_at: float | None = None
        self._answering: asyncio.Task[None] | None = None
        self._waiting: deque[tuple[ServedRequest, bool]] = deque()
        self._answered_at_once = 0
        self._next_turn: asyncio.Handle | None = None
        self._is_open = True
        self._has_ended = False  # no further request will come
        self._kept = 0  # bytes that the parser holds back
        self._in_hand = 0  # bytes of the body that is being answered
        self._continued: list[tuple[str, str]] | None = None  # the headers of the last request that got 100 Continue
        self._begin()

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # transports of other event loops need not be subclasses
        name = transport.get_extra_info("peername")
        self.peer = name[0] if isinstance(name, tuple) and name else None
        if not self._server.add(self):
            self._refuse(503)
            return
        self._allow(self._limits.idle)

    @property
    def is_answering(self) -> bool:
        """Return whether a request is waiting for its answer."""
        return self._answering is not None or bool(self._waiting)

    @property
    def held(self) -> int:
        """Return the number of body bytes in requests without an answer."""
        return len(self._body) + self._in_hand + sum(len(request.body) for request, _ in self._waiting)

    def connection_lost(self, _error: Exception | None) -> None:
        self._is_open = False
        self._body = bytearray()
        self._server.connections.discard(self)
        if self._answering is not None:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        if not self._is_open or self._has_ended:
            return
        self._answered_at_once = 0
        self._kept += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._has_ended = True  # the request gets a normal answer; the bytes after it are not HTTP
        except httptools.HttpParserError:
            self._refuse(400)
        if self._kept > self._limits.head:
            self._refuse(431)
        if self._has_head and self._continued is not self._headers and self._may_continue():
            self._continued = self._headers
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _may_continue(self) -> bool:
        """Return whether to send 100 Continue: the peer waits for it, and no other answer is due."""
        is_due = self.is_answering or self._transport.is_closing()
        return not is_due and ("expect", "100-continue") in self._headers and self._parser.get_http_version() == "1.1"

    def eof_received(self) -> bool:
        self._has_ended = True
        return self.is_answering  # the peer may still wait for answers

    def pause_writing(self) -> None:
        self._read(paused=True)

    def resume_writing(self) -> None:
        if not self.is_answering:
            self._read(paused=False)

    def close_when_idle(self) -> None:
        """Close an idle connection now. Another closes after its last answer."""
        if not self.is_answering:
            self._transport.close()

    def abort_if_late(self, now: float) -> None:
        """Abort if the client takes too long."""
        if self._abort_at is not None and now > self._abort_at:
            self.abort()

    def abort(self) -> None:
        self._transport.abort()

    # What the parser calls

    def _begin(self) -> None:
        self._target = bytearray()
        self._headers: list[tuple[str, str]] = []
        self._body = bytearray()
        self._head = 0
        self._has_head = False

    def on_message_begin(self) -> None:
        self._begin()
        self._allow(self._limits.seconds)

    def on_url(self, url: bytes) -> None:
        self._target += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Trailers only count toward the limit."""
        self._count(len(name) + len(value))
        if self._has_head:
            return
        self._headers.append((name.decode("latin-1").lower(), value.decode("utf-8", "replace").strip(" \t")))
        if len(self._headers) > _MAX_HEADERS:
            self._refuse(431)

    def on_headers_complete(self) -> None:
        """Refuse an ambiguous head."""
        self._has_head = True
        screen = self._server.screen
        if not (self._is_target_clear() and self._is_body_clear()):
            self._refuse(400)
        elif screen is not None and (status := screen(self._target.decode("utf-8", "replace"), self._transport)):
            self._refuse(status)

    def _is_target_clear(self) -> bool:
        version, method = self._parser.get_http_version(), self._parser.get_method()
        hosts, target = self._values("host"), bytes(self._target)
        is_form = target.startswith(b"/") or method == b"CONNECT" or (target == b"*" and method == b"OPTIONS")
        has_host = len(hosts) == 1 or (not hosts and version == "1.0")
        return version in _VERSIONS and has_host and is_form and b"#" not in target

    def _is_body_clear(self) -> bool:
        """Return whether the parser reads the whole body. It reads no body if the request asks for an upgrade."""
        codings = [coding.lower() for coding in self._values("transfer-encoding")]
        if self._parser.should_upgrade():
            return not codings and not any(length.strip("0") for length in self._values("content-length"))
        return not codings or (codings, self._parser.get_http_version()) == (["chunked"], "1.1")

    def _values(self, name: str) -> list[str]:
        return [value for key, value in self._headers if key == name]

    def on_body(self, body: bytes) -> None:
        self._kept = 0
        self._body += body
        if len(self._body) > self._limits.body:
            self._refuse(413)
        elif len(self._body) > _LARGE_BODY_BYTES and self._limits.bodies is not None:
            self._server.limit_bodies(self._limits.bodies)

    def on_message_complete(self) -> None:
        """Answer the request after those before it."""
        if not self._is_open:
            return
        request = ServedRequest(
            self._parser.get_method().decode("latin-1"),
            self._target.decode("utf-8", "replace"),
            self._parser.get_http_version(),
            tuple(self._headers),
            bytes(self._body),
            self.peer,
        )
        self._body = bytearray()
        self._has_head = False
        stays = self._parser.should_keep_alive() and not self._parser.should_upgrade() and not self._server.draining
        self._abort_at = None
        if self._answering is None and not self._waiting and self._answered_at_once < _MAX_REQUESTS_PER_TURN:
            self._answered_at_once += 1
            self._answer(request, stays)
            return
        self._waiting.append((request, stays))
        self._read(paused=True)
        if self._answering is None and self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._answer_waiting)

    def _count(self, size: int) -> None:
        self._kept = 0
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
            self._in_hand = len(request.body)
            self._answering = asyncio.ensure_future(self._answer_later(response, stays, bare))

    async def _answer_later(self, coming: Awaitable[ServedResponse], stays: bool, bare: bool) -> None:
        try:
            response = await coming
        except Exception:
            _LOG.exception("a request could not be answered")
            response = ServedResponse(500)
        self._answering, self._in_hand = None, 0
        self._write(response, stays and not self._server.draining, bare=bare)
        self._answer_waiting()

    def _answer_waiting(self) -> None:
        self._next_turn = None
        for _ in range(min(len(self._waiting), _MAX_REQUESTS_PER_TURN)):
            if self._is_open and self._answering is None:
                self._answer(*self._waiting.popleft())
        if not self._is_open or self._answering is not None:
            return
        if self._waiting:
            self._next_turn = self._loop.call_soon(self._answer_waiting)
        elif self._has_ended:
            self._transport.close()
        else:
            self._read(paused=False)

    def _write(self, response: ServedResponse, stays: bool, *, bare: bool = False) -> None:
        """Write a response; `bare`: without its body, for HEAD."""
        if not self._is_open:
            return
        body = b"" if bare or response.status in _WITHOUT_BODY else response.body
        line = _STATUS_LINES.get(response.status) or f"HTTP/1.1 {response.status} \r\n".encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in response.headers)
        if not head.count("\r") == head.count("\n") == len(response.headers) or "\0" in head:
            _LOG.error("a response has a header with a line break")
            self._write(ServedResponse(500), stays=False)
            return
        closing = "" if stays else "connection: close\r\n"
        end = f"{head}{closing}content-length: {len(body)}\r\n\r\n"
        self._transport.write(line + end.encode("utf-8", "replace") + body)
        if stays:
            self._allow(self._limits.idle)
        else:
            self._is_open = False
            self._transport.close()

    def _refuse(self, status: int) -> None:
        """Answer with an error status and close the connection."""
        self._write(ServedResponse(status), stays=False)

    def _read(self, *, paused: bool) -> None:
        transport = self._transport
        if not transport.is_closing() and transport.is_reading() is paused:
            (transport.pause_reading if paused else transport.resume_reading)()

    def _allow(self, seconds: float) -> None:
        """Give the client `seconds` for its next message."""
        self._abort_at = self._loop.time() + seconds
