"""Metrics over HTTP, for a Prometheus that scrapes the mesh."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from eastgate.local.machine.errors import LocalMeshError
from eastgate.local.machine.http1 import Http1Request, Http1Server, Source

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 5.0


class MetricsRefused(LocalMeshError):  # noqa: N818 - says what happened
    """Nothing can listen there."""


@contextlib.asynccontextmanager
async def serve_metrics(host: str, port: int, text: Callable[[], bytes]) -> AsyncIterator[int]:
    """Serve GET /metrics for as long as the block lasts; yield the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Http1Server(Source(reader), writer, _PATIENCE)
        try:
            async with asyncio.timeout(_PATIENCE):
                if (arrived := await connection.next_request()) is not None:
                    await connection.respond(*_response(arrived[0], text), stays=False)
        except (OSError, TimeoutError):
            pass  # nobody scrapes like that
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, host, port)
    except OSError as error:
        raise MetricsRefused(
            f"metrics cannot be served on {host}:{port}: {error.strerror or error}", help="give --metrics another port"
        ) from None
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()


def _response(request: Http1Request, text: Callable[[], bytes]) -> tuple[int, str, bytes]:
    """Return the status, the type and the body of a response."""
    if request.target.partition("?")[0] != "/metrics":
        return 404, "text/plain", b"the metrics are at /metrics\n"
    if request.method != "GET":
        return 405, "text/plain", b"write GET\n"
    return 200, _TYPE, text()
