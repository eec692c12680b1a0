"""A real API server with a generated cluster in it, and one replica of the controller as a process beside it."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.controller.replicas import Replicas
from tests.programs import ApiServer

from bench.cluster.objects import GROUP
from bench.cluster.requests import Channel, Channels

__all__ = ["RunningReplica", "StatusWatch", "change_policy", "list_everything", "running_server", "started"]

_POLICIES = f"/apis/{GROUP}/v1alpha2/authorizationpolicies"
_LISTED = ("namespaces", "nodes", "serviceaccounts", "services", "pods")
_CONTROLLER = "eastgate.dev/policy-controller"
_REPLICA = "bench"
_TIMEOUT_SECONDS = 600.0


@asynccontextmanager
async def running_server() -> AsyncIterator[tuple[ApiServer, Channels]]:
    """Yield an API server with Eastgate's CRDs, and connections to it."""
    with TemporaryDirectory(prefix="eastgate-bench-") as folder, ApiServer(Path(folder)) as server:
        server.install("eastgate")
        async with Channels.open(server) as channels:
            yield server, channels


async def list_everything(server: ApiServer) -> tuple[float, int]:
    """List the same kinds as the controller, page by page. Return the seconds and the bytes."""
    paths = [*(f"/api/v1/{plural}" for plural in _LISTED), _POLICIES]
    size = 0
    async with Channel(server) as channel:
        started_at = time.perf_counter()
        for path in paths:
            continued: str | None = ""
            while continued is not None:
                content = await channel.send("GET", f"{path}?limit=500&continue={continued}")
                size += len(content)
                continued = _continued(content)
        return time.perf_counter() - started_at, size


def _continued(page: bytes) -> str | None:
    """Return the `continue` token of a page, read from its first bytes only."""
    head = page[:2000].partition(b'"continue":"')[2]
    return head.partition(b'"')[0].decode() or None


@dataclass(frozen=True, slots=True)
class Used:
    """The resources of a process: seconds of CPU, and bytes of memory, current and peak."""

    cpu: float
    resident: int
    peak: int


class RunningReplica:
    """A ready replica. `seconds` is the time from its start until it was ready."""

    def __init__(self, replicas: Replicas, seconds: float) -> None:
        self._replicas = replicas
        self.seconds = seconds
        self.ready = self.used()

    @property
    def xds_port(self) -> int:
        """Return the port of the control plane."""
        return self._replicas.ports[_REPLICA]["xds"]

    def used(self) -> Used:
        """Return the resources that the process has used so far."""
        process = Path("/proc") / str(self._replicas.processes[_REPLICA].pid)
        times = (process / "stat").read_text().rpartition(")")[2].split()
        sizes = dict(line.split(":") for line in (process / "status").read_text().splitlines() if ":\t" in line)
        resident, peak = (int(sizes[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
        return Used((int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"), resident, peak)

    def metric(self, name: str) -> float:
        """Return the sum of all values of a metric."""
        content = (self._replicas.fetch(_REPLICA, "/metrics") or b"").decode()
        lines = (line.rpartition(" ") for line in content.splitlines())
        return sum(float(value) for labelled, _, value in lines if labelled.partition("{")[0] == name)


@contextmanager
def _replicas(server: ApiServer) -> Iterator[Replicas]:
    with suppress(OSError):  # the server may have closed an idle connection; the next request opens a new one
        server.request("GET", "/readyz")
    with TemporaryDirectory(prefix="eastgate-bench-") as folder, Replicas(server, Path(folder)) as replicas:
        yield replicas


@asynccontextmanager
async def started(server: ApiServer) -> AsyncIterator[RunningReplica]:
    """Start a replica, and wait until it is ready."""
    with _replicas(server) as replicas:
        started_at = time.perf_counter()
        replicas.launch(_REPLICA)
        while not await asyncio.to_thread(replicas.is_ready, _REPLICA):
            assert time.perf_counter() < started_at + _TIMEOUT_SECONDS, replicas.logs()
            assert replicas.processes[_REPLICA].poll() is None, replicas.logs()
            await asyncio.sleep(0.02)
        yield RunningReplica(replicas, time.perf_counter() - started_at)


class StatusWatch:
    """A plain watch of policies: when each generation was first seen, and when its status was Programmed."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], dict[int, float]] = {}
        self._observed: dict[tuple[str, str], dict[int, float]] = {}
        self._programmed: dict[tuple[str, str], dict[int, float]] = {}
        self._news = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def open(cls, server: ApiServer) -> AsyncIterator[StatusWatch]:
        """Start a watch, which begins with the existing policies."""
        watch = cls()
        async with Channel(server) as channel:
            task = asyncio.create_task(watch._follow(channel))
            try:
                yield watch
            finally:
                task.cancel()
                await asyncio.wait([task])

    async def _follow(self, channel: Channel) -> None:
        async for event in channel.watch(f"{_POLICIES}?watch=true"):
            now, obj = time.perf_counter(), event["object"]
            metadata = obj["metadata"]
            key, generation = (metadata["namespace"], metadata["name"]), metadata["generation"]
            self._seen.setdefault(key, {}).setdefault(generation, now)
            for condition in _conditions(obj):
                observed = condition.get("observedGeneration", 0)
                self._observed.setdefault(key, {}).setdefault(observed, now)
                if condition["type"] == "Programmed" and condition["status"] == "True":
                    self._programmed.setdefault(key, {}).setdefault(observed, now)
            self._news.set()

    async def seen(self, key: tuple[str, str], generation: int) -> float:
        """Return the time at which a generation was seen."""
        return await self._when(self._seen, key, generation)

    async def programmed(self, key: tuple[str, str], generation: int) -> float:
        """Return the time at which the status of a generation was Programmed."""
        return await self._when(self._programmed, key, generation)

    async def all_observed(self, policies: int) -> float:
        """Return the time at which this many policies had a status."""
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while len(self._observed) < policies:
                await self._wait()
        return time.perf_counter()

    async def _when(
        self, times: dict[tuple[str, str], dict[int, float]], key: tuple[str, str], generation: int
    ) -> float:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while generation not in times.get(key, {}):
                await self._wait()
        return times[key][generation]

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()


def _conditions(obj: Any) -> list[Any]:
    ancestors = (obj.get("status") or {}).get("ancestors") or []
    own = [entry for entry in ancestors if entry.get("controllerName") == _CONTROLLER]
    return [condition for entry in own for condition in entry["conditions"]]


async def change_policy(channels: Channels, key: tuple[str, str], policy: Any) -> int:
    """Replace the spec of a policy. Return its new generation."""
    namespace, name = key
    path = f"/apis/{GROUP}/v1alpha2/namespaces/{namespace}/authorizationpolicies/{name}"
    [answer] = await channels.send_all([("PATCH", path, {"spec": policy["spec"]})])
    generation: int = json.loads(answer)["metadata"]["generation"]
    return generation
