"""The HTTP port of a replica: whether it lives and is ready, and its metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from eastgate.authorizer.http_server import HttpServer, ServedRequest, ServedResponse
from eastgate.controller.election import Election
from eastgate.controller.heartbeat import Heartbeat
from eastgate.controller.replica import Replica

__all__ = ["HealthServer"]

_STUCK: Final = 60.0  # seconds without a beat
_TOO_LONG: Final = 300.0  # seconds for one batch of changes


class HealthServer:
    """Answers probes and Prometheus. Use it with `async with`; it is not ready until it has a replica that is.

    `following` is the task of which everything is part that goes on: without it a replica is not alive.
    """

    def __init__(self, host: str, port: int, heartbeat: Heartbeat | None = None) -> None:
        self._host = host
        self._port = port
        self._http = HttpServer(self._answer)
        self._server: asyncio.Server | None = None
        self._heartbeat = heartbeat
        self.replica: Replica | None = None
        self.election: Election | None = None
        self.following: asyncio.Task[None] | None = None

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
                failures = list(self._failures())
                return ServedResponse(503 if failures else 200, (), f"{'; '.join(failures) or 'ok'}\n".encode())
            case "/readyz":
                ready = self.replica is not None and self.replica.is_ready
                return ServedResponse(200 if ready else 503, (), b"ready\n" if ready else b"not ready\n")
            case "/metrics":
                if self.replica is None:
                    return ServedResponse(503)
                metrics = generate_latest(self.replica.metrics.registry)
                return ServedResponse(200, (("content-type", CONTENT_TYPE_LATEST),), metrics)
            case _:
                return ServedResponse(404)

    def _failures(self) -> Iterator[str]:
        """Yield why the replica should be restarted. Before it has begun to follow there is no reason."""
        if self._heartbeat is not None and self._heartbeat.age > _STUCK:
            yield "the event loop was stuck"
        if self.following is None or self.replica is None:
            return
        if self.following.done() or not self.replica.source.follower.is_running:
            yield "the cluster is not followed any more"
        since = self.replica.applying_since
        if since is not None and time.monotonic() - since > _TOO_LONG:
            yield "a change is being applied without end"
