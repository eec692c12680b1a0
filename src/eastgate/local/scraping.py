"""Metrics over HTTP, for a Prometheus that scrapes the mesh."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from eastgate.control.authorizer.http_server import HttpLimits, HttpServer, ServedRequest, ServedResponse
from eastgate.local.machine.errors import LocalMeshError

_TYPE = (("content-type", "text/plain; version=0.0.4; charset=utf-8"),)
_TEXT = (("content-type", "text/plain"),)
_LIMITS = HttpLimits(body=0, seconds=5.0, connections=64)


class MetricsRefused(LocalMeshError):  # noqa: N818 - says what happened
    """Nothing can listen there."""


@contextlib.asynccontextmanager
async def serve_metrics(host: str, port: int, text: Callable[[], bytes]) -> AsyncIterator[int]:
    """Serve GET /metrics for as long as the block lasts; yield the port."""

    def answer(request: ServedRequest) -> ServedResponse:
        if request.target.partition("?")[0] != "/metrics":
            return ServedResponse(404, _TEXT, b"the metrics are at /metrics\n")
        if request.method != "GET":
            return ServedResponse(405, _TEXT, b"write GET\n")
        return ServedResponse(200, _TYPE, text())

    http = HttpServer(answer, _LIMITS)
    try:
        server = await asyncio.get_running_loop().create_server(http.protocol, host, port)
    except OSError as error:
        raise MetricsRefused(
            f"metrics cannot be served on {host}:{port}: {error.strerror or error}", help="give --metrics another port"
        ) from None
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await http.drain(0)
