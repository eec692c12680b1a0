"""The HTTP port of a replica: whether it lives and is ready, and its metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from eastgate.control.authorizer.http_listener import HttpListener
from eastgate.control.authorizer.http_server import ServedRequest, ServedResponse
from eastgate.controller.election import Election
from eastgate.controller.heartbeat import Heartbeat
from eastgate.controller.replica import Replica

_STUCK: Final = 60.0  # seconds without a beat
_TOO_LONG: Final = 300.0  # seconds for one batch of changes


class HealthServer(HttpListener):
    """Answers probes and Prometheus. Use it with `async with`. It is ready when its replica is."""

    def __init__(self, host: str, port: int, heartbeat: Heartbeat | None = None) -> None:
        super().__init__(self._answer)
        self._host = host
        self._port = port
        self._heartbeat = heartbeat
        self.replica: Replica | None = None
        self.election: Election | None = None

    async def listen(self) -> asyncio.Server:
        """Open the port."""
        return await asyncio.get_running_loop().create_server(self.http.protocol, self._host, self._port)

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
        """Yield the reasons to restart the process. A failed replica is none: another takes its place."""
        if self._heartbeat is not None and self._heartbeat.age > _STUCK:
            yield "the event loop was stuck"
        since = self.replica.applying_since if self.replica is not None else None
        if since is not None and time.monotonic() - since > _TOO_LONG:
            yield "a change is being applied without end"
