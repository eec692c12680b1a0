"""Calls send exactly the given bytes, and report the result."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from eastgate.local.machine.connection import OPEN, CallConnection, Called, HttpRequest, Target
from eastgate.local.machine.envoy import EnvoyProcess
from tests.local.machine import certificates
from tests.local.machine.calling import call
from tests.local.machine.envoys import bootstrap, free_port
from tests.patience import PATIENCE

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@asynccontextmanager
async def serving(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[Target]:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await behaviour(reader, writer)
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield Target("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()


def says(answer: bytes, *, reads: bool = True) -> Behaviour:
    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if reads:
            await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    return behaviour


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def _reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    peer = writer.get_extra_info("socket")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


@pytest.mark.parametrize("with_tls", [False, True])
def test_a_request_is_sent_as_it_is_given(with_tls: bool, tmp_path: Path) -> None:
    pem = certificates.write(tmp_path)
    sent: list[bytes] = []

    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(_OK)

    async def scene() -> None:
        headers = (("Host", "cart"), ("X-A", "1"), ("x-a", " 2"), ("\udcff", "ä"))
        request = HttpRequest("oDd", "/a/../b//%2f%2e;x?y#z", headers)
        async with serving(behaviour, certificates.server(pem) if with_tls else None) as target:
            tls = certificates.client(pem, pem) if with_tls else None
            called = await call(target, tls=tls, source_address="127.9.8.7", request=request)
        assert (called.status, called.body, called.error) == (200, b"ok", None)
        assert called.bytes_received == len(_OK)
        assert called.elapsed_ms > 0
        head = "oDd /a/../b//%2f%2e;x?y#z HTTP/1.1\r\nHost: cart\r\nX-A: 1\r\nx-a:  2\r\n"
        assert sent == [head.encode() + b"\xff: \xc3\xa4\r\n\r\n"]

    asyncio.run(scene())


def test_what_a_request_lacks_is_added_unless_it_is_meant_to_lack_it() -> None:
    assert HttpRequest("PUT", "/", body=b"abc").encode("h:1") == (
        b"PUT / HTTP/1.1\r\nhost: h:1\r\ncontent-length: 3\r\n\r\nabc"
    )
    assert HttpRequest("PUT", "/", body=b"abc", complete=False).encode("h:1") == b"PUT / HTTP/1.1\r\n\r\nabc"
    with pytest.raises(ValueError, match="line breaks"):
        HttpRequest(path="/ HTTP/1.1\r\nx: y").encode("h")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", Called(204)),
        (b"HTTP/1.1 403 Forbidden\r\nX: y\r\n\r\nRBAC", Called(403, (("X", "y"),), b"RBAC")),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n" + _OK,
            Called(200, (("content-length", "2"),), b"ok"),
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            Called(200, (("transfer-encoding", "chunked"),), b"ok"),
        ),
        (b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", Called(200, (("content-length", "0"),))),
        (b"", Called(0, error="closed before any byte")),
        (b"SSH-2.0\r\n\r\n", Called(0, error="bad response: this is no HTTP/1.1 response")),
        (b"HTTP/1.1 200 OK\r\ncontent", Called(0, error="bad response: the stream ended inside the head")),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok",
            Called(0, error="bad response: the stream ended inside the body"),
        ),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, Called(0, error="bad response: a line is too long")),
    ],
)
def test_answers(answer: bytes, expected: Called) -> None:
    async def scene() -> None:
        async with serving(says(answer)) as target:
            called = await call(target, request=HttpRequest())
        assert (called.status, called.headers, called.body, called.error) == (
            expected.status,
            expected.headers,
            expected.body,
            expected.error,
        )

    asyncio.run(scene())


def test_no_answer_says_why() -> None:
    async def scene() -> None:
        nobody = Target("127.0.0.1", free_port())
        assert (await call(nobody, request=HttpRequest())).error == "refused"
        assert (await call(nobody, request=b"x")).status == 0
        async with serving(_silent) as target:
            called = await call(target, request=HttpRequest(), timeout=0.1)
            assert (called.status, called.error) == (0, "timeout")
            called = await call(target, source_address="192.0.2.1", request=HttpRequest())
            assert called.status == 0
            assert (called.error or "").startswith("unreachable: ")
        async with serving(_reset) as target:
            assert (await call(target, request=HttpRequest())).error == "reset"
            assert (await call(target, request=b"x")).error == "reset"

    asyncio.run(scene())


def test_tls_with_a_real_envoy_works_or_says_why_not(tmp_path: Path) -> None:
    pem, other = certificates.write(tmp_path), certificates.write(tmp_path, "other")

    async def scene() -> None:
        target = Target("127.0.0.1", free_port())
        config = bootstrap(target.port, pem=pem)
        envoy = await EnvoyProcess.start(config, "n", on_record=lambda _: None, on_log=lambda _: None)
        while (await call(target, timeout=0.05)).error == "refused":
            await asyncio.sleep(0.02)
        for request in (HttpRequest(path="/a/%2e./b"), b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"):
            assert (await call(target, tls=certificates.client(pem, pem), request=request)).body.endswith(b"ok")
            for trusted, own, why in (
                (pem, None, "tls: tlsv13 alert certificate required"),
                (pem, other, "tls: tlsv1 alert unknown ca"),
                (other, pem, "tls: self-signed certificate"),
            ):
                called = await call(target, tls=certificates.client(trusted, own), request=request)
                assert (called.status, called.error) == (0, why)
            assert (await call(target, request=request, timeout=2)).status == 0
        await envoy.stop()

    asyncio.run(scene())


def test_a_peer_without_tls_says_so(tmp_path: Path) -> None:
    tls = certificates.client(certificates.write(tmp_path), None)

    async def scene() -> None:
        async with serving(says(b"", reads=False)) as target:
            closed = await call(target, tls=tls, request=HttpRequest())
            assert (closed.status, closed.error) == (0, "tls: closed during the handshake")
        async with serving(says(b"220 plain text\r\n", reads=False)) as target:
            assert (await call(target, tls=tls, request=HttpRequest())).error == "tls: wrong version number"

    asyncio.run(scene())


def test_an_answer_counts_that_comes_before_everything_is_sent() -> None:
    async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()

    async def scene() -> None:
        answered = asyncio.Event()

        async def waiting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await hasty(reader, writer)
            await answered.wait()

        for behaviour in (hasty, waiting):
            async with serving(behaviour) as target:
                called = await call(target, request=HttpRequest("POST", body=b"x" * 20_000_000), timeout=PATIENCE)
                assert (called.status, called.error) == (403, None)
                answered.set()

    asyncio.run(scene())


def test_the_peers_answer_is_read_although_sending_failed_first() -> None:
    def answer_and_reset(listening: socket.socket) -> None:
        peer, _ = listening.accept()
        with peer:
            peer.recv(1)
            peer.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    async def scene(listening: socket.socket) -> None:
        server = threading.Thread(target=answer_and_reset, args=(listening,))
        server.start()
        async with await CallConnection.open(Target("127.0.0.1", listening.getsockname()[1])) as connection:
            await connection.send(b"x")
            server.join()  # the event loop stands still meanwhile, so nothing has been read yet
            await connection.send(HttpRequest())
            assert (await connection.response()).status == 403
            assert await connection.peer_closed(1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        asyncio.run(scene(listening))


def test_unread_bytes_are_not_buffered_without_limit() -> None:
    sent = 0

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000

    async def scene() -> None:
        async with serving(endless) as target, await CallConnection.open(target) as connection:
            await asyncio.sleep(0.3)
            before = sent
            assert before < 30_000_000
            assert len((await connection.raw(enough=before + 5_000_000)).body) >= 5_000_000

    asyncio.run(scene())


def test_raw_calls_take_what_comes() -> None:
    async def scene() -> None:
        async with serving(says(b"220 hi\r\n", reads=False)) as target:
            called = await call(target)
            assert (called.status, called.body, called.bytes_received, called.error) == (OPEN, b"220 hi\r\n", 8, None)
        async with serving(says(b"", reads=False)) as target:
            assert (await call(target)).error == "closed before any byte"
        async with serving(_silent) as target:
            called = await call(target, request=b"hello", timeout=0.1)
            assert (called.status, called.body, called.error) == (OPEN, b"", None)

        async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                writer.write(b"x" * 1000)
                await writer.drain()

        async with serving(endless) as target:
            called = await call(target, enough=5000, timeout=PATIENCE)
            assert called.bytes_received >= 5000
            assert called.error is None

    asyncio.run(scene())


def test_a_connection_stays_open_and_tells_when_the_peer_closed() -> None:
    leave = asyncio.Event()

    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(_OK)
        await leave.wait()

    async def scene() -> None:
        async with (
            serving(behaviour) as target,
            await CallConnection.open(target, source_address="127.5.5.5") as connection,
        ):
            assert connection.local_address[0] == "127.5.5.5"
            await connection.send(HttpRequest())
            assert (await connection.response()).status == 200
            await connection.send(HttpRequest("HEAD", complete=False))
            await connection.send(HttpRequest())
            assert not await connection.peer_closed(0.05)
            assert connection.closed_at is None
            leave.set()
            assert await connection.peer_closed(2)
            assert connection.closed_at is not None

    asyncio.run(scene())
