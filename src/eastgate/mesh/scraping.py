"""Metrics over HTTP, for a Prometheus that scrapes the mesh."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from eastgate.mesh.local.errors import LocalMeshError

__all__ = ["MetricsRefused", "serve_metrics"]

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 5.0
_LONGEST = 16 * 1024


class MetricsRefused(LocalMeshError):  # noqa: N818 - says what happened
    """Nothing can listen there."""


@contextlib.asynccontextmanager
async def serve_metrics(host: str, port: int, text: Callable[[], bytes]) -> AsyncIterator[int]:
    """Answers GET /metrics for as long as the block lasts; gives the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(head.split(b"\r\n", 1)[0], text))
                await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass  # nobody scrapes like that
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=_LONGEST)
    except OSError as error:
        raise MetricsRefused(
            f"metrics cannot be served on {host}:{port}: {error.strerror or error}", help="give --metrics another port"
        ) from None
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()


def _response(request: bytes, text: Callable[[], bytes]) -> bytes:
    method, _, rest = request.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if path != b"/metrics":
        return _message("404 Not Found", "text/plain", b"the metrics are at /metrics\n")
    if method != b"GET":
        return _message("405 Method Not Allowed", "text/plain", b"write GET\n")
    return _message("200 OK", _TYPE, text())


def _message(status: str, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body
