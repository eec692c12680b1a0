"""A cluster that grows: the time until a replica is ready, its memory, and the delay of a policy and its status."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from statistics import median

from tests.programs import ApiServer

from bench.cluster.objects import PODS_PER_APP, App, apps, policy
from bench.cluster.proxies import SimulatedProxies
from bench.cluster.requests import Channels, fill
from bench.cluster.running import RunningReplica, StatusWatch, change_policy, list_everything, running_server, started
from bench.report import Section

__all__ = ["Growth"]

_PAUSE_SECONDS = 1.0  # between two changes: the controller writes a status at most every half second
_COLUMNS = (
    "pods", "policies", "list s", "list MB", "ready s", "CPU s", "times list", "statuses s", "resident MB", "peak MB",
    "seen ms", "enforced ms", "most", "times seen", "status ms", "most",
)  # fmt: skip
_MEASURED = (
    "One replica of `eastgate controller` as a process, beside a real API server. Each pod has a sidecar, an address, "
    "and one policy; each five share a Service and an account. list: one connection lists what the controller "
    "lists, page by page, and discards it: the least cost of reading this cluster. ready: from the start of "
    "the process until /readyz succeeds, and the CPU seconds until then. statuses: until all policies without a status "
    "have one; the controller writes 100 at once and then 50 a second. A change of a policy, from the request: "
    "seen by a plain watch; enforced: acknowledged by the proxies of its five pods, simulated, each over TLS with the "
    "token of its pod; status: seen as Programmed by the watch. The median, and the most."
)
_GROWING = ("list_s", "ready_s", "ready_cpu_s", "resident", "seen_ms", "enforced_ms", "status_ms")


class Growth:
    """Clusters of several sizes. Each contains the smaller one."""

    def __init__(self, sizes: tuple[int, ...], changes: int) -> None:
        self._sizes = sizes
        self._changes = changes
        self._points: list[dict[str, float]] = []

    async def run(self) -> Section:
        """Measure all sizes."""
        async with running_server() as (server, channels):
            filled = 0
            for size in self._sizes:
                print(f"cluster, {size:,} pods", file=sys.stderr, flush=True)
                await fill(channels, apps(filled, size))
                self._points.append(await self._measure(server, channels, size, new=(size - filled) // PODS_PER_APP))
                filled = size
        rows: list[list[str | float]] = [_row(point) for point in self._points]
        points: list[dict[str, object]] = [{**point} for point in self._points]
        return Section("A cluster", _MEASURED, _COLUMNS, rows, [], [_growth(self._points)], points)

    async def _measure(self, server: ApiServer, channels: Channels, size: int, new: int) -> dict[str, float]:
        list_seconds, list_bytes = await list_everything(server)
        async with started(server) as replica, StatusWatch.open(server) as watch:
            ready_at = time.perf_counter()
            statuses = await watch.all_observed(size // PODS_PER_APP) - ready_at if new else 0.0
            changes = await self._change(replica, channels, watch)
            used = replica.used()
            return {
                "pods": size,
                "policies": size // PODS_PER_APP,
                "list_s": list_seconds,
                "list_bytes": list_bytes,
                "ready_s": replica.seconds,
                "ready_cpu_s": replica.ready.cpu,
                "ready_resident": replica.ready.resident,
                "statuses_s": statuses,
                "new_statuses": new,
                "cpu_s": used.cpu,
                "resident": used.resident,
                "peak": used.peak,
                **changes,
            }

    async def _change(self, replica: RunningReplica, channels: Channels, watch: StatusWatch) -> dict[str, float]:
        app = App(0)
        key = app.namespace, app.name
        pods = [(app.namespace, name, app.name) for name in app.pods]
        before = f"caller-{time.time_ns():x}"
        await change_policy(channels, key, policy(app, before))
        seen, enforced, status = [], [], []
        async with SimulatedProxies.connected(channels, pods, replica.xds_port, before) as (proxies, _):
            for number in range(self._changes):
                await asyncio.sleep(_PAUSE_SECONDS)
                caller = f"{before}-{number}"
                proxies.expect(caller)
                started_at = time.perf_counter()
                generation = await change_policy(channels, key, policy(app, caller))
                enforced.append(await proxies.acknowledged() - started_at)
                seen.append(await watch.seen(key, generation) - started_at)
                status.append(await watch.programmed(key, generation) - started_at)
        return {
            f"{name}_ms": value * 1e3
            for name, value in (
                ("seen", median(seen)), ("enforced", median(enforced)), ("enforced_most", max(enforced)),
                ("status", median(status)), ("status_most", max(status)),
            )
        }  # fmt: skip


def _row(point: dict[str, float]) -> list[str | float]:
    return [
        point["pods"], point["policies"], point["list_s"], point["list_bytes"] / 1e6, point["ready_s"],
        point["ready_cpu_s"], point["ready_s"] / point["list_s"], point["statuses_s"], point["resident"] / 1e6,
        point["peak"] / 1e6, point["seen_ms"], point["enforced_ms"], point["enforced_most_ms"],
        point["enforced_ms"] / point["seen_ms"], point["status_ms"], point["status_most_ms"],
    ]  # fmt: skip


def _growth(points: list[dict[str, float]]) -> str:
    """Return the growth of each number with the pods, as the exponent between the smallest and largest cluster."""
    first, last = points[0], points[-1]
    times = math.log(last["pods"] / first["pods"]) if last is not first else math.inf
    exponents = (f"{name} {math.log(last[name] / first[name]) / times:.2f}" for name in _GROWING)
    return f"growth with the number of pods, as an exponent: {', '.join(exponents)}"
