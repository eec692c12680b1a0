"""Every byte of an answer arrives before its connection is closed, whoever closes it and however the answer ends."""

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
_VERY_LARGE = 30_000_000  # more than all buffers on the way hold
_ENDS = ("sized", "chunked", "bye", "closing", "old")
_WAYS = {  # of asking
    "1.1": (b"HTTP/1.1", b""),
    "1.1 close": (b"HTTP/1.1", b"connection: close\r\n"),
    "1.0": (b"HTTP/1.0", b""),
    "1.0 keep-alive": (b"HTTP/1.0", b"connection: keep-alive\r\n"),
}


@dataclass(frozen=True)
class _Heard:
    """What came back, and whether the connection was closed or reset after it."""

    data: bytes
    closed: bool
    reset: bool = False

    def answer(self) -> bytes:
        """The body of the one response."""
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


def _read(one: socket.socket, complete: int) -> _Heard:
    """Reads until the peer closes, or a complete answer of this size at least is there."""
    heard = bytearray()
    try:
        while not _complete(heard, complete):
            piece = one.recv(65536)
            if not piece:
                return _Heard(bytes(heard), closed=True)
            heard += piece
    except (ConnectionResetError, ssl.SSLEOFError):
        return _Heard(bytes(heard), closed=True, reset=True)
    return _Heard(bytes(heard), closed=False)


def _some(one: socket.socket, size: int) -> bytes:
    heard = bytearray()
    while len(heard) < size and (piece := one.recv(min(65536, size - len(heard)))):
        heard += piece
    return bytes(heard)


def _complete(heard: bytearray, size: int) -> bool:
    head, _, rest = bytes(heard[:2000]).lower().partition(b"\r\n\r\n")
    if not rest or (b"connection: close" in head and b" 200 " in head):  # it must be closed
        return False
    if b"chunked" in head:
        return heard.endswith(b"\r\n0\r\n\r\n")
    return b"content-length" in head and len(heard) - len(head) - 4 >= size


@asynccontextmanager
async def _connected(mesh: Running, who: str | None, port: int = HTTP) -> AsyncIterator[socket.socket]:
    """A socket that blocks, with little room for what it does not read."""
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


async def _asked(mesh: Running, who: str | None, data: bytes, complete: int = 0) -> _Heard:
    async with _connected(mesh, who) as one:
        await asyncio.to_thread(one.sendall, data)
        return await asyncio.to_thread(_read, one, complete)


async def test_every_answer_arrives_however_it_was_asked_for_and_however_it_ends() -> None:
    lost = []
    async with running(*_BASE, apps={HTTP: Answering()}) as mesh:
        for size, who, (way, (version, more)), end in itertools.product(
            (_SMALL, _LARGE), ("alice", None), _WAYS.items(), _ENDS
        ):
            request = b"GET /api/%b/%d %b\r\nhost: a\r\n%b\r\n" % (end.encode(), size, version, more)
            heard = await _asked(mesh, who, request, size)
            if heard.reset or heard.answer() != body(size):
                lost.append((way, end, size, who, len(heard.data), heard.reset))
    assert not lost


async def test_ten_of_ten_arrive() -> None:
    async with running(*_BASE) as mesh:
        for who in ("alice", None):
            requests = [
                b"GET /api/x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
                b"GET /api/x HTTP/1.0\r\nhost: a\r\n\r\n",
            ]
            for request in requests * 10:
                heard = await _asked(mesh, who, request)
                assert b'"path": "/api/x"' in heard.answer()
                assert heard.closed
                assert not heard.reset


async def test_a_refusal_arrives_too() -> None:
    async with running(*_BASE) as mesh:
        for version, more in _WAYS.values():
            heard = await _asked(mesh, "alice", b"GET /no %b\r\nhost: a\r\n%b\r\n" % (version, more), 10)
            assert heard.data.startswith(version + b" 403 ")
            assert heard.data.endswith(b"\r\n\r\nforbidden\n")


async def test_without_http_all_bytes_arrive_before_the_application_closes() -> None:
    """Also where the caller has told that it will send nothing more. TLS has no such thing."""
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
                    heard = await asyncio.to_thread(_read, one, size)
                assert heard == _Heard(body(size), closed=True), (size, who, shuts_down, len(heard.data))


async def test_a_caller_who_stops_reading_for_seconds_gets_all_of_an_answer_all_the_same() -> None:
    async with running(*_BASE, apps={HTTP: Answering()}) as mesh:

        async def hesitates(who: str | None, how: bytes) -> None:
            async with _connected(mesh, who) as one:
                request = b"GET /api/%b/%d HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n" % (how, _VERY_LARGE)
                await asyncio.to_thread(one.sendall, request)
                heard = bytearray()
                for left in range(18, 6, -1):  # megabytes; where the proxy has the last of them is not known
                    heard += await asyncio.to_thread(_some, one, _VERY_LARGE - left * 1_000_000 - len(heard))
                    await asyncio.sleep(1.5)
                rest = await asyncio.to_thread(_read, one, _VERY_LARGE - len(heard))
                assert _Heard(bytes(heard) + rest.data, True).answer() == body(_VERY_LARGE), (who, how, len(heard))

        ways = itertools.product(("alice", None), (b"sized", b"bye"))
        await asyncio.gather(*(hesitates(who, how) for who, how in ways))
