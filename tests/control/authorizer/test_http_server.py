"""The HTTP server: time limits of connections, and refusal of ambiguous requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from eastgate.control.authorizer.http_server import HttpLimits, HttpProtocol, HttpServer, ServedRequest, ServedResponse
from tests.loops import LOOPS, run_on

UPGRADE = b"GET /a HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"
REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.reading = True

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def is_reading(self) -> bool:
        return self.reading

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    @property
    def statuses(self) -> list[int]:
        return [int(line.split()[1]) for line in self.written.splitlines() if line.startswith(b"HTTP/1.1 ")]


def connect(server: HttpServer) -> tuple[HttpProtocol, _Transport]:
    connection, transport = server.protocol(), _Transport()
    connection.connection_made(transport)
    return connection, transport


@pytest.mark.parametrize("is_late", [False, True])
def test_an_upgrade_is_answered_as_a_request_and_the_connection_ends(is_late: bool) -> None:
    async def run() -> None:
        asked: list[str] = []

        async def later() -> ServedResponse:
            return ServedResponse(403)

        def answer(request: ServedRequest) -> ServedResponse | Awaitable[ServedResponse]:
            asked.append(request.target)
            return later() if is_late else ServedResponse(403)

        connection, transport = connect(HttpServer(answer))
        connection.data_received(UPGRADE + REQUEST)
        connection.data_received(REQUEST)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (transport.written.count(b"HTTP/1.1"), transport.written[:12]) == (1, b"HTTP/1.1 403")
        assert (transport.closed, asked) == (True, ["/a"])

    asyncio.run(run())


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        (b"", 120),  # it is idle
        (REQUEST, 120),
        (REQUEST[:5], 10),  # it has begun
        (REQUEST + REQUEST[:5], 10),
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n1234", 10),
    ],
)
def test_a_slow_connection_is_aborted(sent: bytes, seconds: float) -> None:
    async def run() -> None:
        connection, transport = connect(HttpServer(lambda _: ServedResponse(200)))
        if sent:
            connection.data_received(sent)
        now = asyncio.get_running_loop().time()
        connection.abort_if_late(now + seconds - 1)
        assert not transport.closed
        connection.abort_if_late(now + seconds + 1)
        assert transport.closed

    asyncio.run(run())


_WAITING = b"POST /a HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n"


def test_a_peer_that_waits_before_its_body_may_go_on() -> None:
    async def run() -> None:
        connection, transport = connect(HttpServer(lambda _: ServedResponse(200)))
        connection.data_received(_WAITING)
        assert transport.statuses == [100]
        connection.data_received(b"x")
        assert transport.statuses == [100, 200]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("before", "sent", "statuses"),
    [
        (REQUEST, _WAITING, []),  # the client would take it for the answer to the previous request
        (b"", _WAITING.replace(b"/a", b"/a#b"), [400]),
        (b"", _WAITING.replace(b"HTTP/1.1", b"HTTP/1.0"), []),
    ],
)
def test_nothing_else_lets_a_peer_go_on(before: bytes, sent: bytes, statuses: list[int]) -> None:
    async def run() -> None:
        coming: asyncio.Future[ServedResponse] = asyncio.get_running_loop().create_future()
        connection, transport = connect(HttpServer(lambda _: coming))
        connection.data_received(before + sent)
        assert transport.statuses == statuses
        coming.cancel()

    asyncio.run(run())


def test_an_answer_may_take_its_time() -> None:
    async def run() -> None:
        coming: asyncio.Future[ServedResponse] = asyncio.get_running_loop().create_future()
        connection, transport = connect(HttpServer(lambda _: coming))
        connection.data_received(REQUEST)
        connection.abort_if_late(asyncio.get_running_loop().time() + 1000)
        assert not transport.closed
        coming.set_result(ServedResponse(200))
        while not transport.written:
            await asyncio.sleep(0)

    asyncio.run(run())


def test_connections_are_looked_at_by_themselves() -> None:
    async def run() -> None:
        _, transport = connect(HttpServer(lambda _: ServedResponse(200), HttpLimits(idle=0.0)))
        while not transport.closed:
            await asyncio.sleep(0.01)

    asyncio.run(run())


# Ambiguous requests

_HEAD = b"POST /a HTTP/1.1\r\nhost: a\r\n"
_CHUNKED = _HEAD + b"transfer-encoding: chunked\r\n\r\n"
_BODY = b"5\r\nhello\r\n0\r\n\r\n"
_NEXT = b"GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"


class _Recorder:
    """A handler that records requests, and a connection to it in memory."""

    def __init__(self) -> None:
        self.requests: list[ServedRequest] = []
        self.connection, self.transport = connect(HttpServer(self._answer))

    def _answer(self, request: ServedRequest) -> ServedResponse:
        self.requests.append(request)
        return ServedResponse(200)


@pytest.mark.parametrize(
    "sent",
    [
        _HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + _NEXT,
        _HEAD + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n" + _NEXT,
        _HEAD + b"content-length: 5\r\ncontent-length: 5\r\n\r\nhello",
        _HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        *(
            _HEAD + b"content-length: " + length + b"\r\n\r\nhello"
            for length in (b"5, 5", b"+5", b"-5", b"5 6", b"0x5", b"", b"18446744073709551621", b"5_0")
        ),
        *(
            _HEAD + b"transfer-encoding: " + coding + b"\r\n\r\n" + _BODY
            for coding in (
                b"gzip",
                b"gzip, chunked",
                b"chunked, gzip",
                b"chunked, chunked",
                b"xchunked",
                b"\x0bchunked",
            )
        ),
        _HEAD + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n" + _BODY,
        _HEAD + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n" + _BODY,
        b"POST /a HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + _BODY,
        _CHUNKED + b"5;a\nhello\r\n0\r\n\r\n",
        _CHUNKED + b"5\nhello\n0\n\n",
        _CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
        _CHUNKED + b"fffffffffffffffff5\r\nhello\r\n0\r\n\r\n",
        _CHUNKED + b"5\r\nhelloXX\r\n0\r\n\r\n",
        _HEAD + b"x: a\r\n b\r\n\r\n",
        b"GET /a HTTP/1.1\r\n host: a\r\n\r\n",
        b"GET /a HTTP/1.1\nhost: a\n\n",
        _HEAD + b"x: a\rb: c\r\n\r\n",
        _HEAD + b"x: a\0b\r\n\r\n",
        _HEAD + b"x\0: a\r\n\r\n",
        _HEAD + b"x : a\r\n\r\n",
        _HEAD + b": a\r\n\r\n",
        b"GET /a HTTP/1.1\r\n\r\n",
        b"GET /a HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n",
        b"GET /a HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n",
        *(
            b"GET " + target + b" HTTP/1.1\r\nhost: a\r\n\r\n"
            for target in (
                b"http://b/c",
                b"b:80",
                b"*",
                b"/a b",
                b"/a\tb",
                b"/\xc3\xa4",
                b"/\0",
                b"/\x7f",
                b"/a#b",
                b"",
            )
        ),
        b"OPTIONS http://b HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /a\r\n\r\n",
        b"GET /a HTTP/0.9\r\nhost: a\r\n\r\n",
        b"GET /a HTTP/1.2\r\nhost: a\r\n\r\n",
        b"GET /a HTTP/2.0\r\nhost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        _HEAD + b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 5\r\n\r\nhello" + _NEXT,
        _HEAD + b"connection: upgrade\r\nupgrade: h2c\r\ntransfer-encoding: chunked\r\n\r\n" + _BODY,
        b"CONNECT b:80 HTTP/1.1\r\nhost: b:80\r\ncontent-length: 5\r\n\r\nhello",
    ],
)
@pytest.mark.parametrize("size", [None, 1])
def test_an_ambiguous_request_is_refused(sent: bytes, size: int | None) -> None:
    async def run() -> None:
        peer = _Recorder()
        for start in range(0, len(sent), size or len(sent)):
            peer.connection.data_received(sent[start : start + (size or len(sent))])
        assert (peer.requests, peer.transport.statuses, peer.transport.closed) == ([], [400], True)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("sent", "bodies"),
    [
        (_HEAD + b"content-length: 05 \r\n\r\nhello" + REQUEST, [b"hello", b""]),
        (_HEAD + b"transfer-encoding: Chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n" + REQUEST, [b"hello", b""]),
        (b"\r\n" + REQUEST * 100, [b""] * 100),
        (b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n", [b""]),
        (b"GET / HTTP/1.0\r\n\r\n" + _NEXT, [b""]),
        (b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n" + _NEXT, [b""]),
        (b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n" + _NEXT, [b""]),
        (b"CONNECT b:80 HTTP/1.1\r\nhost: b:80\r\ncontent-length: 0\r\n\r\n" + _NEXT, [b""]),
    ],
)
def test_each_request_is_answered_once_and_in_order(sent: bytes, bodies: list[bytes]) -> None:
    async def run() -> None:
        peer = _Recorder()
        peer.connection.data_received(sent)
        while len(peer.requests) < len(bodies):
            await asyncio.sleep(0)
        assert [request.body for request in peer.requests] == bodies
        assert peer.transport.statuses == [200] * len(bodies)
        assert not any(request.target == "/smuggled" for request in peer.requests)

    asyncio.run(run())


def test_headers_behind_a_body_are_none_of_the_request() -> None:
    async def run() -> None:
        peer = _Recorder()
        peer.connection.data_received(_CHUNKED + b"5\r\nhello\r\n0\r\nx-role: admin\r\nhost: b\r\n\r\n")
        assert [name for name, _ in peer.requests[0].headers] == ["host", "transfer-encoding"]
        assert peer.requests[0].values("host") == ["a"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"", b"\r\n" * 500),
        (b"GET /", b"a" * 1000),
        (_HEAD, b"x" * 1000),
        (_HEAD + b"x: ", b"y" * 1000),
        (_HEAD, b"x: " + b"y" * 1000 + b"\r\n"),
        (_CHUNKED + b"5;", b"y" * 1000),
        (_CHUNKED + b"0\r\nx: ", b"y" * 1000),
        (_CHUNKED + b"0\r\n", b"x: " + b"y" * 1000 + b"\r\n"),
    ],
)
def test_no_part_of_a_head_is_without_end(begin: bytes, more: bytes) -> None:
    async def run() -> None:
        peer = _Recorder()
        if begin:
            peer.connection.data_received(begin)
        sent = 0
        while not peer.transport.closed:
            peer.connection.data_received(more)
            sent += len(more)
            assert sent < 70_000
        assert (peer.requests, peer.transport.statuses) == ([], [431])

    asyncio.run(run())


def test_a_peer_with_many_requests_lets_others_have_their_turn() -> None:
    async def run() -> None:
        order: list[str | None] = []

        def answer(request: ServedRequest) -> ServedResponse:
            order.append(request.target)
            return ServedResponse(200)

        server = HttpServer(answer)
        (many, many_transport), (other, _) = connect(server), connect(server)
        many.data_received(REQUEST * 1000)
        other.data_received(b"GET /other HTTP/1.1\r\nhost: a\r\n\r\n")
        assert order.index("/other") < 100
        assert not many_transport.reading
        while len(many_transport.statuses) < 1000:
            await asyncio.sleep(0)
        assert many_transport.reading

    asyncio.run(run())


@pytest.mark.parametrize("value", ["a\r\nx-role: admin", "a\nb", "a\rb", "a\0b"])
def test_no_header_of_an_answer_has_a_line_break(value: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)

    async def run() -> None:
        connection, transport = connect(HttpServer(lambda _: ServedResponse(200, (("x-user", value),))))
        connection.data_received(REQUEST)
        assert (transport.statuses, b"role" in transport.written, transport.closed) == ([500], False, True)

    asyncio.run(run())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_half_closed_connection_gets_its_answers_and_is_closed(loop: str) -> None:
    async def run() -> None:
        may_answer = asyncio.Event()

        async def later() -> ServedResponse:
            await may_answer.wait()
            return ServedResponse(200)

        def answer(request: ServedRequest) -> ServedResponse | Awaitable[ServedResponse]:
            return ServedResponse(200, body=request.body) if request.body else later()

        server = HttpServer(answer)
        listener = await asyncio.get_running_loop().create_server(server.protocol, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        writer.write(REQUEST + _HEAD + b"content-length: 100000\r\n\r\n" + b"x" * 100_000 + REQUEST)
        writer.write_eof()
        await writer.drain()
        may_answer.set()
        answers = await reader.read()
        assert (answers.count(b"HTTP/1.1 200"), answers.count(b"x" * 100_000)) == (3, 1)
        writer.close()
        listener.close()
        await server.drain(1.0)

    run_on(loop, run())
