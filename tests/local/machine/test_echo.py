"""The built-in application answers HTTP, echoes other bytes, and survives any input."""

from __future__ import annotations

import asyncio
import json
import os
import random
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from eastgate.local.machine.echo import EchoOptions, EchoServer, EchoTimes
from tests.patience import PATIENCE

_GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
_QUICK = EchoTimes(idle=5, head=0.2, sniff=0.1, write=0.3, request=0.5)
Exchange = Callable[[bytes], Awaitable[bytes]]


@asynccontextmanager
async def echoing(folder: Path, options: EchoOptions | None = None) -> AsyncIterator[tuple[EchoServer, Exchange]]:
    echo = EchoServer(str(folder / "app.sock"), "shop/cart", 8080, options or EchoOptions(times=_QUICK))
    await echo.start()

    async def exchange(sent: bytes) -> bytes:
        """All answers to these bytes, if nothing follows them."""
        reader, writer = await asyncio.open_unix_connection(echo.path)
        writer.write(sent)
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        return answer

    try:
        yield echo, exchange
    finally:
        await echo.stop()
        assert not os.path.exists(echo.path)
        assert echo.raw | echo.http.connections == set()


def _statuses(answer: bytes) -> list[int]:
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def test_a_request_is_returned_to_its_caller(runtime: Path) -> None:
    async def scene() -> None:
        async with echoing(runtime) as (echo, exchange):
            answer = await exchange(b"GET /a/../%2f?q=1 HTTP/1.1\r\nHost: cart\r\nX-A: 1\r\nx-a: 2\r\n\r\n")
            assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {
                "workload": "shop/cart",
                "port": 8080,
                "method": "GET",
                "path": "/a/../%2f?q=1",
                "headers": {"host": "cart", "x-a": "1, 2"},
                "body_bytes": 0,
            }
            assert (echo.connections, echo.requests) == (1, 1)
            assert stat.S_IMODE(os.stat(echo.path).st_mode) == 0o600

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", [200, 200]),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n", [200, 200]),
        (
            b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nt: 1\r\n\r\n" + _GET,
            [200] * 2,
        ),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", [200, 200]),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", [200]),
        (b"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", [200]),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET / HTTP/1.0\r\n\r\n", [200, 200]),
        (b"PURGE /a//%2e;b?c HTTP/1.1\r\nHost: a\r\n\r\n", [200]),
        (b"GET /a#d HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        (b"PURGE /odd path HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        (b"GET / HTTP/1.1\r\n\r\n", [400]),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", [400]),
        (b"get / HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        (b"GET / HTTP/1.1\nHost: a\n\n", [400]),
        (b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", [200]),
        (b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx", [200]),
        (b"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", [400]),
        (b"GET / HTTP/1.1\r\nHost: a\r\nbad name: x\r\n\r\n", [400]),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost", []),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n", [200, 400]),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab", []),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n\r\n", [400]),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", [400]),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", [400]),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", [400]),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n", [400]),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 5000, [400]),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", [431]),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 20_000 + b"\r\n", [431]),
        (b"GET /" + b"a" * 70_000, [431]),
    ],
)
def test_requests_and_what_looks_like_them(sent: bytes, statuses: list[int], runtime: Path) -> None:
    async def scene() -> None:
        async with echoing(runtime) as (echo, exchange):
            answer = await exchange(sent)
            assert _statuses(answer) == statuses
            assert echo.requests == statuses.count(200)
            assert _statuses(await exchange(_GET)) == [200]

    asyncio.run(scene())


def test_head_has_a_length_and_no_body(runtime: Path) -> None:
    async def scene() -> None:
        async with echoing(runtime) as (_, exchange):
            answer = await exchange(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"content-length: " in answer
            assert answer.endswith(b"\r\n\r\n")

    asyncio.run(scene())


@pytest.mark.parametrize(
    "sent",
    [
        b"hello",
        b"hello world",
        b"hello\nworld\n",
        b"G",
        b"GET",
        b"GET something\n",
        b"GET / HTTP/9\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"\0" * 100_000,
        b"",
    ],
)
def test_other_bytes_come_back(sent: bytes, runtime: Path) -> None:
    async def scene() -> None:
        async with echoing(runtime) as (echo, exchange):
            assert await exchange(sent) == sent
            assert echo.requests == 0

    asyncio.run(scene())


def test_bytes_come_back_while_the_connection_stays_open(runtime: Path) -> None:
    async def scene() -> None:
        async with echoing(runtime) as (_, _exchange):
            reader, writer = await asyncio.open_unix_connection(str(runtime / "app.sock"))
            for sent in (b"PO", b"hello world", _GET):
                writer.write(sent)
                assert await asyncio.wait_for(reader.readexactly(len(sent)), PATIENCE) == sent
            writer.close()

    asyncio.run(scene())


def test_a_request_may_come_byte_by_byte_but_not_for_ever(runtime: Path) -> None:
    async def scene() -> None:
        async with echoing(runtime) as (_, _exchange):
            reader, writer = await asyncio.open_unix_connection(str(runtime / "app.sock"))
            for byte in _GET:
                writer.write(bytes([byte]))
                await asyncio.sleep(0.001)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"}\n")
            writer.write(b"GET / HTTP/1.1\r\nHost:")
            with suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            writer.close()

    asyncio.run(scene())


def test_a_client_that_does_not_read_is_left(runtime: Path) -> None:
    async def scene() -> None:
        async with echoing(runtime) as (echo, exchange):
            _, writer = await asyncio.open_unix_connection(echo.path)
            writer.write(b"\0" * 10_000_000)
            for _ in range(100):
                await asyncio.sleep(0.02)
                if echo.connections == 1 and not echo.raw:
                    break
            assert echo.raw | echo.http.connections == set()
            writer.transport.abort()
            assert await exchange(b"hello") == b"hello"

    asyncio.run(scene())


def test_garbage_never_stops_it(runtime: Path) -> None:
    async def scene() -> None:
        chance = random.Random(4)  # noqa: S311 - it is to be the same each time
        async with echoing(runtime) as (_, exchange):
            words = [
                b"GET",
                b" ",
                b"/",
                b"HTTP/1.1",
                b"\r\n",
                b"\n",
                b":",
                b"\0",
                b"chunked",
                b"Content-Length: 9",
                b"\xff",
            ]
            for _ in range(300):
                await exchange(b"".join(chance.choices(words, k=chance.randrange(12))))
            assert _statuses(await exchange(_GET)) == [200]

    asyncio.run(scene())


def test_it_can_speak_first_and_keep_sending(runtime: Path) -> None:
    async def scene() -> None:
        async with echoing(runtime, EchoOptions(greeting=b"220 hi\r\n", push_every=0.02)) as (_, _exchange):
            reader, writer = await asyncio.open_unix_connection(str(runtime / "app.sock"))
            assert await reader.readexactly(8) == b"220 hi\r\n"
            assert await asyncio.wait_for(reader.readexactly(15), PATIENCE) == b"tick\n" * 3
            writer.close()

    asyncio.run(scene())
