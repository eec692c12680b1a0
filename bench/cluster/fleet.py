"""Many proxies of one replica: the time until all have connected, and until all have acknowledged a change."""

from __future__ import annotations

import json
import sys
import time
from statistics import median

from tests.programs import ApiServer

from bench.cluster.objects import GROUP, App, apps, objects_of_app, pod_status, policy
from bench.cluster.proxies import SimulatedProxies
from bench.cluster.requests import Channels, fill
from bench.cluster.running import StatusWatch, change_policy, running_server, started
from bench.report import Section

__all__ = ["Fleet"]

_HOME = "fleet"
_POLICY = _HOME, "everybody"
_COLUMNS = (
    "proxies", "pods", "settled s", "CPU ms each", "resident MB", "sent kB each", "policy ms", "most", "CPU ms",
    "status ms", "pod ms", "CPU ms",
)  # fmt: skip
_MEASURED = (
    "Simulated proxies of one replica: each a stream over a TLS connection of its own, with the token of its pod, that "
    "asks for all resources and acknowledges each response. They run in one process, so that part of each time is "
    "theirs. settled: from the first connection until the last proxy has acknowledged its secrets and a policy. CPU: "
    "of the controller. policy: a policy that selects all pods changes, until the last proxy has acknowledged it; "
    "status: until the policy is Programmed. pod: another pod with a sidecar gets an address, which all proxies need "
    "for mTLS to it, until the last has acknowledged the first resource that names its account."
)


class Fleet:
    """Proxies of one namespace, in a cluster with a given number of pods."""

    def __init__(self, proxies: int, pods: int, changes: int) -> None:
        self._proxies = proxies
        self._pods = pods
        self._changes = changes

    async def run(self) -> Section:
        """Connect all proxies, and make changes that all of them must acknowledge."""
        print(f"cluster, {self._proxies:,} proxies", file=sys.stderr, flush=True)
        async with running_server() as (server, channels):
            await fill(channels, apps(self._proxies, self._pods))
            await fill(channels, apps(0, self._proxies, _HOME))
            path = f"/apis/{GROUP}/v1alpha2/namespaces/{_HOME}/authorizationpolicies"
            await channels.send_all([("POST", path, _policy("caller"))])
            point = await self._measure(server, channels)
        row: list[str | float] = [
            point["proxies"], point["pods"], point["settled_s"], point["settled_cpu_s"] * 1e3 / point["proxies"],
            point["resident"] / 1e6, point["settled_bytes"] / 1e3 / point["proxies"], point["policy_ms"],
            point["policy_most_ms"], point["policy_cpu_ms"], point["status_ms"], point["pod_ms"], point["pod_cpu_ms"],
        ]  # fmt: skip
        notes = [
            f"before the first proxy connected, the controller had {point['ready_resident'] / 1e6:,.0f} MB; "
            f"its metrics count {point['sent'] / 1e6:,.1f} MB sent"
        ]
        return Section("Proxies of one replica", _MEASURED, _COLUMNS, [row], [], notes, [dict(point)])

    async def _measure(self, server: ApiServer, channels: Channels) -> dict[str, float]:
        pods = [(app.namespace, name, app.name) for app in apps(0, self._proxies, _HOME) for name in app.pods]
        async with started(server) as replica, StatusWatch.open(server) as watch:
            await watch.all_observed(self._pods // len(App(0).pods) + 1)
            idle = replica.used()
            async with SimulatedProxies.connected(channels, pods, replica.xds_port, "caller") as (proxies, settled):
                used = replica.used()
                point: dict[str, float] = {
                    "proxies": self._proxies,
                    "pods": self._pods,
                    "ready_resident": idle.resident,
                    "settled_s": settled,
                    "settled_cpu_s": used.cpu - idle.cpu,
                    "settled_bytes": proxies.received,
                }
                times, statuses = [], []
                for number in range(self._changes):
                    proxies.expect(f"caller-{number}")
                    started_at = time.perf_counter()
                    generation = await change_policy(channels, _POLICY, _policy(f"caller-{number}"))
                    times.append(await proxies.acknowledged() - started_at)
                    statuses.append(await watch.programmed(_POLICY, generation) - started_at)
                changed = replica.used()
                point |= {
                    "policy_ms": median(times) * 1e3,
                    "policy_most_ms": max(times) * 1e3,
                    "policy_cpu_ms": (changed.cpu - used.cpu) * 1e3 / self._changes,
                    "status_ms": median(statuses) * 1e3,
                }
                point |= await self._add_pods(channels, proxies)
                last = replica.used()
                point |= {"pod_cpu_ms": (last.cpu - changed.cpu) * 1e3 / self._changes, "resident": last.resident}
                point["sent"] = replica.metric("eastgate_xds_sent_bytes_total")
                return point

    async def _add_pods(self, channels: Channels, proxies: SimulatedProxies) -> dict[str, float]:
        times = []
        for number in range(self._changes):
            app = App(self._pods + number, _HOME)
            objects = list(objects_of_app(app))
            account, pod = objects[0], objects[-1]
            await channels.send_all([("POST", path, obj) for path, obj in (account, pod)])
            proxies.expect(f"sa/{app.name}")
            name = pod[1]["metadata"]["name"]
            started_at = time.perf_counter()
            status = pod_status(app.address(0))
            await channels.send_all([("PATCH", f"/api/v1/namespaces/{_HOME}/pods/{name}/status", status)])
            times.append(await proxies.acknowledged() - started_at)
        return {"pod_ms": median(times) * 1e3}


def _policy(caller: str) -> dict[str, object]:
    made = json.loads(json.dumps(policy(App(0, _HOME), caller)))
    made["metadata"]["name"] = _POLICY[1]
    made["spec"]["targetRefs"][0]["selector"] = {"matchLabels": {"team": _HOME}}
    return dict(made)
