"""The HTTP port of a replica: whether it lives and is ready, and its metrics."""

from __future__ import annotations

import asyncio
from types import TracebackType

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from eastgate.authorizer.http_server import HttpServer, ServedRequest, ServedResponse
from eastgate.controller.election import Election
from eastgate.controller.replica import Replica

__all__ = ["HealthServer"]


class HealthServer:
    """Answers probes and Prometheus. Use it with `async with`; it is not ready until it has a replica that is."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._http = HttpServer(self._answer)
        self._server: asyncio.Server | None = None
        self.replica: Replica | None = None
        self.election: Election | None = None

    async def __aenter__(self) -> HealthServer:
        self._server = await asyncio.get_running_loop().create_server(self._http.protocol, self._host, self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            await self._http.drain(1.0)

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        assert self._server is not None  # noqa: S101 - it was started
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def _answer(self, request: ServedRequest) -> ServedResponse:
        match request.target.partition("?")[0]:
            case "/healthz":
                return ServedResponse(200, (), b"ok\n")
            case "/readyz":
                ready = self.replica is not None and self.replica.ready
                return ServedResponse(200 if ready else 503, (), b"ready\n" if ready else b"not ready\n")
            case "/metrics":
                if self.replica is None:
                    return ServedResponse(503)
                metrics = generate_latest(self.replica.control.server.metrics.registry)
                return ServedResponse(200, (("content-type", CONTENT_TYPE_LATEST),), metrics)
            case _:
                return ServedResponse(404)
