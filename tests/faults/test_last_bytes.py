"""Every byte of an answer arrives before its connection closes, for either side that closes and every kind of end."""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.faults.answering import Answering, body
from tests.faults.meshes import Running, running
from tests.faults.worlds import HTTP, RAW, allow, sa, world

_BASE = [*world(), allow("connect"), allow("request", paths=["/api/*"])]
_SMALL, _LARGE = 300, 3_000_000
_VERY_LARGE = 30_000_000  # bytes; more than all buffers on the path
_ENDS = ("sized", "chunked", "bye", "closing", "old")
_REQUESTS = {  # by name
    "1.1": (b"HTTP/1.1", b""),
    "1.1 close": (b"HTTP/1.1", b"connection: close\r\n"),
    "1.0": (b"HTTP/1.0", b""),
    "1.0 keep-alive": (b"HTTP/1.0", b"connection: keep-alive\r\n"),
}


@dataclass(frozen=True)
class _Received:
    """The received bytes, and whether the connection was closed or reset after them."""

    data: bytes
    closed: bool
    reset: bool = False

    def answer(self) -> bytes:
        """Return the body of the only response."""
        head, found, rest = self.data.partition(b"\r\n\r\n")
        assert found, self
        assert b" 200 " in head.partition(b"\r\n")[0], head
        if b"transfer-encoding: chunked" in head.lower():
            return _joined(rest)
        return rest


def _joined(rest: bytes) -> bytes:
    pieces: list[bytes] = []
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return b"".join(pieces)
        pieces.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]


def _read(one: socket.socket, complete: int) -> _Received:
    """Read until the peer closes, or until a complete answer of at least this size."""
    received = bytearray()
    try:
        while not _complete(received, complete):
            piece = one.recv(65536)
            if not piece:
                return _Received(bytes(received), closed=True)
            received += piece
    except (ConnectionResetError, ssl.SSLEOFError):
        return _Received(bytes(received), closed=True, reset=True)
    return _Received(bytes(received), closed=False)


def _some(one: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size and (piece := one.recv(min(65536, size - len(received)))):
        received += piece
    return bytes(received)


def _complete(received: bytearray, size: int) -> bool:
    head, _, rest = bytes(received[:2000]).lower().partition(b"\r\n\r\n")
    if not rest or (b"connection: close" in head and b" 200 " in head):  # the connection must close
        return False
    if b"chunked" in head:
        return received.endswith(b"\r\n0\r\n\r\n")
    return b"content-length" in head and len(received) - len(head) - 4 >= size


@asynccontextmanager
async def _connected(mesh: Running, who: str | None, port: int = HTTP) -> AsyncIterator[socket.socket]:
    """Yield a blocking socket with a small receive buffer."""
    tls = await mesh.mesh.certificates.context(sa(who)) if who is not None else None
    target = mesh.target(port)

    def connect() -> socket.socket:
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        plain.settimeout(30)
        plain.connect((target.address, target.port))
        return tls.wrap_socket(plain) if tls is not None else plain

    one = await asyncio.to_thread(connect)
    with one:
        yield one


async def _asked(mesh: Running, who: str | None, data: bytes, complete: int = 0) -> _Received:
    async with _connected(mesh, who) as one:
        await asyncio.to_thread(one.sendall, data)
        return await asyncio.to_thread(_read, one, complete)


async def test_every_answer_arrives_however_it_was_asked_for_and_however_it_ends() -> None:
    lost = []
    async with running(*_BASE, apps={HTTP: Answering()}) as mesh:
        for size, who, (way, (version, more)), end in itertools.product(
            (_SMALL, _LARGE), ("alice", None), _REQUESTS.items(), _ENDS
        ):
            request = b"GET /api/%b/%d %b\r\nhost: a\r\n%b\r\n" % (end.encode(), size, version, more)
            received = await _asked(mesh, who, request, size)
            if received.reset or received.answer() != body(size):
                lost.append((way, end, size, who, len(received.data), received.reset))
    assert not lost


async def test_ten_of_ten_arrive() -> None:
    async with running(*_BASE) as mesh:
        for who in ("alice", None):
            requests = [
                b"GET /api/x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
                b"GET /api/x HTTP/1.0\r\nhost: a\r\n\r\n",
            ]
            for request in requests * 10:
                received = await _asked(mesh, who, request)
                assert b'"path": "/api/x"' in received.answer()
                assert received.closed
                assert not received.reset


async def test_a_refusal_arrives_too() -> None:
    async with running(*_BASE) as mesh:
        for version, more in _REQUESTS.values():
            received = await _asked(mesh, "alice", b"GET /no %b\r\nhost: a\r\n%b\r\n" % (version, more), 10)
            assert received.data.startswith(version + b" 403 ")
            assert received.data.endswith(b"\r\n\r\nforbidden\n")


async def test_without_http_all_bytes_arrive_before_the_application_closes() -> None:
    """Check also a caller that has closed its half of the connection, which TLS does not have."""
    anything = allow("anything")
    anything["spec"]["enforcementLevel"] = "APPLICATION"
    for more in ([], [anything, allow("request", paths=["/api/*"])]):
        manifests = [*world(RAW), allow("connect"), *more]
        async with running(*manifests, apps={RAW: Answering(raw=True)}) as mesh:
            ways = [("alice", False), (None, False), (None, True)]
            for size, (who, shuts_down) in itertools.product((1, _SMALL, _LARGE), ways):
                async with _connected(mesh, who, RAW) as one:
                    await asyncio.to_thread(one.sendall, b"<0000001>\n")
                    assert await asyncio.to_thread(one.recv, 1) == body(1)
                    await asyncio.to_thread(one.sendall, b"<!%d>\n" % size)
                    if shuts_down:
                        one.shutdown(socket.SHUT_WR)
                    received = await asyncio.to_thread(_read, one, size)
                assert received == _Received(body(size), closed=True), (size, who, shuts_down, len(received.data))


async def test_a_caller_that_stops_reading_for_seconds_gets_all_of_an_answer() -> None:
    async with running(*_BASE, apps={HTTP: Answering()}) as mesh:

        async def hesitates(who: str | None, how: bytes) -> None:
            async with _connected(mesh, who) as one:
                request = b"GET /api/%b/%d HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n" % (how, _VERY_LARGE)
                await asyncio.to_thread(one.sendall, request)
                received = bytearray()
                for left in range(18, 6, -1):  # megabytes; the position of the last bytes in the proxy is unknown
                    received += await asyncio.to_thread(_some, one, _VERY_LARGE - left * 1_000_000 - len(received))
                    await asyncio.sleep(1.5)
                rest = await asyncio.to_thread(_read, one, _VERY_LARGE - len(received))
                assert _Received(bytes(received) + rest.data, True).answer() == body(_VERY_LARGE), (
                    who,
                    how,
                    len(received),
                )

        ways = itertools.product(("alice", None), (b"sized", b"bye"))
        await asyncio.gather(*(hesitates(who, how) for who, how in ways))
