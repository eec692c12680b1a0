"""How long a connection of the HTTP server may take for what has to come next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eastgate.authorizer.http_server import HttpLimits, HttpProtocol, HttpServer, ServedResponse

REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def is_reading(self) -> bool:
        return True


def connect(server: HttpServer) -> tuple[HttpProtocol, _Transport]:
    connection, transport = server.protocol(), _Transport()
    connection.connection_made(transport)
    return connection, transport


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
def test_who_takes_too_long_is_left(sent: bytes, seconds: float) -> None:
    async def run() -> None:
        connection, transport = connect(HttpServer(lambda _: ServedResponse(200)))
        if sent:
            connection.data_received(sent)
        now = asyncio.get_running_loop().time()
        connection.look_at_time(now + seconds - 1)
        assert not transport.closed
        connection.look_at_time(now + seconds + 1)
        assert transport.closed

    asyncio.run(run())


def test_an_answer_may_take_its_time() -> None:
    async def run() -> None:
        coming: asyncio.Future[ServedResponse] = asyncio.get_running_loop().create_future()
        connection, transport = connect(HttpServer(lambda _: coming))
        connection.data_received(REQUEST)
        connection.look_at_time(asyncio.get_running_loop().time() + 1000)
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
