"""The metrics of a mesh over HTTP: at one path, by GET, within limits."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from eastgate.local.session import MetricsRefused, serve_metrics
from tests.patience import PATIENCE

HOST = "127.0.0.1"


async def ask(port: int, sent: bytes) -> bytes:
    """Return the whole answer."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(sent)
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("request_line", "head", "status"),
    [
        ("GET /metrics", "", 200),
        ("GET /metrics?name=x", "", 200),
        ("POST /metrics", "", 405),
        ("POST /metrics", "content-length: 1\r\n", 413),
        ("GET /", "", 404),
        ("GET /metrics", "x: " + "x" * 70_000 + "\r\n", 431),
    ],
)
def test_only_a_get_of_the_metrics_has_them(request_line: str, head: str, status: int) -> None:
    async def run() -> None:
        async with serve_metrics(HOST, 0, lambda: b"eastgate_decisions 1\n") as port:
            sent = f"{request_line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{head}\r\n"
            answer = await ask(port, sent.encode() + b"x" * head.startswith("content-length"))
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert (b"eastgate_decisions" in answer) == (status == 200)

    asyncio.run(run())


def test_a_port_that_is_taken_is_refused() -> None:
    async def run() -> None:
        async with serve_metrics(HOST, 0, bytes) as port:
            with pytest.raises(MetricsRefused, match="cannot be served"):
                async with serve_metrics(HOST, port, bytes):
                    pass

    asyncio.run(run())


def test_the_end_waits_for_no_client() -> None:
    async def run() -> None:
        async with serve_metrics(HOST, 0, bytes) as port:
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(b"GET /metrics HTTP/1.1\r\nhost:")
            await writer.drain()
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        writer.close()

    asyncio.run(run())
