"""A failed replica is replaced by another, which reads everything that the first one missed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eastgate.authority.sources.source import ClusterSource
from eastgate.controller import controller
from eastgate.controller.election import ElectionTimes
from eastgate.controller.options import ControllerOptions, ListeningPorts
from eastgate.controller.replica import Replica
from eastgate.reading.kubernetes import connect
from eastgate.settings import Settings
from tests.controller.replicas import SYSTEM
from tests.patience import PATIENCE
from tests.programs import ApiServer, free_port

pytestmark = pytest.mark.apiserver


async def _get(port: int, path: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return int(answer.split()[1]), answer


def test_a_change_that_cannot_be_applied_is_applied_by_the_next_replica(
    own_api_server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = own_api_server
    server.install("gateway-api", "eastgate")
    server.create("/api/v1/namespaces", {"metadata": {"name": SYSTEM}})
    started: list[Replica] = []
    apply, start = ClusterSource.apply, Replica._start

    def failing(source: ClusterSource, changes: Any, *more: Any) -> Any:
        if any(obj["metadata"]["name"] == "late" for obj in changes.put):
            raise TypeError("unhashable")
        return apply(source, changes, *more)

    async def counted(replica: Replica) -> None:
        started.append(replica)
        await start(replica)

    monkeypatch.setattr(ClusterSource, "apply", failing)
    monkeypatch.setattr(Replica, "_start", counted)
    http = free_port()
    ports = ListeningPorts(0, 0, 0, 0, 0, http)
    times = ElectionTimes.of_lease(3)
    options = ControllerOptions("a", host="127.0.0.1", ports=ports, election=times)
    statuses: list[int] = []

    async def run() -> str:
        stopping, ready = asyncio.Event(), asyncio.Event()
        async with asyncio.timeout(PATIENCE), connect(server.kubeconfig) as connection:
            running = asyncio.create_task(controller.run_controller(connection, Settings(), options, stopping, ready))
            await ready.wait()
            assert (await _get(http, "/readyz"))[0] == 200
            await asyncio.to_thread(server.create, "/api/v1/namespaces", {"metadata": {"name": "late"}})
            while len(started) < 2 or (await _get(http, "/readyz"))[0] != 200:
                statuses.append((await _get(http, "/readyz"))[0])
                await asyncio.sleep(0.01)
            assert (await _get(http, "/healthz"))[0] == 200
            metrics = (await _get(http, "/metrics"))[1]
            stopping.set()
            await running
        return metrics

    metrics = asyncio.run(run())
    assert 503 in statuses
    assert len(started) == 2
    assert 'eastgate_task_failures_total{task="the replica"} 1.0' in metrics
    assert "late" in started[-1].world.namespaces
