"""Runs the controller: a replica, its health and metrics, and its writers while it leads."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

import msgspec
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from eastgate._version import __version__
from eastgate.basics.tasks import BackgroundTask, log_failure, run_together
from eastgate.control.authorizer.http_checks import HttpListener
from eastgate.control.authorizer.http_server import HttpLimits, ServedRequest, ServedResponse
from eastgate.control.authorizer.log import task_failures
from eastgate.controller.collecting import ReplicaCollector
from eastgate.controller.election import Election, Heartbeat
from eastgate.controller.leading import Leader
from eastgate.controller.logs import cleaned, log_recovery, log_trouble
from eastgate.controller.options import ControllerOptions
from eastgate.controller.replica import Replica
from eastgate.controller.tracing import start_tracing
from eastgate.reading.kubernetes import Connection
from eastgate.settings import Settings

# A snapshot of a replica as JSON, at its loopback address: the kinds that it follows, its policies and its proxies.
#
# It holds no content of objects, and so no secret.


_HOST: Final = "127.0.0.1"
_JSON: Final = (("content-type", "application/json"), ("cache-control", "no-store"))
_NAMES: Final = ("localhost", _HOST)
_LIMITS: Final = HttpLimits(body=0, connections=16)


def snapshot(replica: Replica, election: Election | None = None, heartbeat: Heartbeat | None = None) -> dict[str, Any]:
    """Return the state of a replica as plain data."""
    follower, control, writer = replica.source.follower, replica.control, replica.statuses.writer
    report = control.report()
    kinds = {
        str(resource): {
            "version": resource.version,
            "objects": follower.counts.get((resource.group, resource.kind), 0),
            "lagSeconds": round(seconds, 3),
        }
        for resource, seconds in sorted(follower.lags.items(), key=lambda item: str(item[0]))
    }
    proxies = {name: _proxy(report.proxies[name].to_json()) for name in sorted(report.proxies)}
    plan = replica.statuses.view.native
    return {
        "replica": replica.options.replica,
        "versions": {"eastgate": __version__, "python": sys.version.split()[0]},
        "leader": {"leads": election.leads, "holder": election.leader} if election is not None else None,
        "ready": replica.is_ready,
        "loopLagSeconds": round(heartbeat.lag, 3) if heartbeat is not None else None,
        "revision": report.revision,
        "kinds": kinds,
        "faults": {str(ref): [error.message for error in errors] for ref, errors in replica.source.faults.items()},
        "policies": {
            name: {"generation": applied.generation, "revision": applied.revision}
            for name, applied in sorted(report.policies.items())
        },
        "states": replica.statuses.to_json(),
        "statusWrites": dict(sorted(writer.counts.items())),
        "proxies": proxies,
        "native": {str(outcome.source): str(outcome.state) for outcome in plan.outcomes} if plan is not None else None,
        "certificates": {
            name: end.isoformat(timespec="seconds") for name, end in sorted(replica.certificate_ends().items())
        },
        "settings": replica.settings.to_json(),
        "options": {"webhooks": replica.options.webhooks, "native": replica.options.native},
    }


def _proxy(report: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in report.items() if key != "proxy"}


class DebugServer(HttpListener):
    """The server of snapshots at `/debug`, on the loopback address only. Use it with `async with`."""

    def __init__(self, port: int, take: Callable[[], dict[str, Any]]) -> None:
        super().__init__(self._answer, _LIMITS)
        self._port = port
        self._take = take

    async def listen(self) -> asyncio.Server:
        """Open the port."""
        return await asyncio.get_running_loop().create_server(self.http.protocol, _HOST, self._port)

    def _answer(self, request: ServedRequest) -> ServedResponse:
        hosts = [host.rpartition(":")[0] or host for host in request.values("host")]
        if not all(host in _NAMES for host in hosts):  # a DNS name that an attacker points to this address
            return ServedResponse(403)
        if request.target != "/debug" or request.method != "GET":
            return ServedResponse(404)
        return ServedResponse(200, _JSON, msgspec.json.encode(cleaned(self._take())))


# The HTTP port of a replica: liveness, readiness and metrics.


_STUCK_SECONDS: Final = 60.0  # without a heartbeat
_MAX_BATCH_SECONDS: Final = 300.0  # for one batch of changes


class HealthServer(HttpListener):
    """The server for probes and Prometheus. Use it with `async with`. It is ready when its replica is ready."""

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
        """Yield the reasons to restart the process. A failed replica is no reason: another one replaces it."""
        if self._heartbeat is not None and self._heartbeat.age > _STUCK_SECONDS:
            yield "the event loop was stuck"
        since = self.replica.applying_since if self.replica is not None else None
        if since is not None and time.monotonic() - since > _MAX_BATCH_SECONDS:
            yield "a change takes too long to apply"


_LOG = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.5  # between two readiness checks


async def run_controller(
    connection: Connection,
    settings: Settings,
    options: ControllerOptions,
    stopping: asyncio.Event,
    on_ready: asyncio.Event | None = None,
) -> None:
    """Run one replica until `stopping` is set. Raises KubeconfigError, ApiError and UnreachableError at the start.

    If the replica fails later, another one replaces it after a pause, and reads everything again.
    """
    async with AsyncExitStack() as stack:
        stack.callback(start_tracing(options.replica))
        heartbeat = await stack.enter_async_context(Heartbeat())
        health = await stack.enter_async_context(HealthServer(options.host, options.ports.http, heartbeat))
        running = _RunningReplica(connection, settings, options, health, heartbeat)
        stack.push_async_callback(running.end)
        await running.begin()
        replicas = BackgroundTask("the replica", running.run, running.on_failure)
        stack.push_async_callback(replicas.start().stop)
        if on_ready is not None:
            on_ready.set()
        await stopping.wait()
        _LOG.info("%s stops", options.replica, extra={"replica": options.replica})
        health.replica = None


class _RunningReplica:
    """The replica of a process. After a failure another one replaces it."""

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        options: ControllerOptions,
        health: HealthServer,
        heartbeat: Heartbeat,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._options = options
        self._health = health
        self._heartbeat = heartbeat
        self._failures = task_failures(None)
        self._stack = AsyncExitStack()
        self._current: tuple[Replica, Election] | None = None

    async def begin(self) -> tuple[Replica, Election]:
        """Start a replica, and use it for probes and metrics."""
        options, enter = self._options, self._stack.enter_async_context
        replica = await enter(Replica(self._connection, self._settings, options, self._failures))
        election = Election(
            self._connection,
            options.namespace,
            options.replica,
            times=options.election,
            on_trouble=partial(log_trouble, _LOG),
            on_recovery=partial(log_recovery, _LOG),
        )
        replica.metrics.registry.register(ReplicaCollector(replica, lambda: election, lambda: self._heartbeat))
        if options.observation.debug_port is not None:
            await enter(
                DebugServer(options.observation.debug_port, lambda: snapshot(replica, election, self._heartbeat))
            )
        self._current = replica, election
        self._health.replica, self._health.election = replica, election
        return self._current

    async def run(self) -> None:
        """Follow the cluster and take part in the election, until one of them fails."""
        try:
            replica, election = self._current or await self.begin()
            leader = Leader(replica)
            electing = BackgroundTask("the election of a leader", partial(election.run, leader.run), replica.on_failure)
            await run_together(
                replica.follow(),
                BackgroundTask("the CA", replica.keep_ca, replica.on_failure).run(),
                BackgroundTask("giving memory back", replica.release_memory, replica.on_failure).run(),
                electing.run(),
                _log_readiness(replica),
            )
        finally:
            await self.end()

    async def end(self) -> None:
        """Stop the replica."""
        self._current = self._health.replica = self._health.election = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    def on_failure(self, name: str, error: Exception) -> None:
        """Count and log the failure of a replica."""
        self._failures.labels(name).inc()
        log_failure(name, error)


async def _log_readiness(replica: Replica) -> None:
    """Log each change of the readiness of a replica."""
    fields = {"replica": replica.options.replica}
    was_ready: bool | None = None
    while True:
        if replica.is_ready != was_ready:
            was_ready = replica.is_ready
            if was_ready:
                _LOG.info("%s is ready", replica.options.replica, extra=fields)
            else:
                reason = _reason_not_ready(replica)
                _LOG.warning("%s is not ready: %s", replica.options.replica, reason, extra=fields)
        await asyncio.sleep(_POLL_SECONDS)


def _reason_not_ready(replica: Replica) -> str:
    if replica.unseen_policies:
        return f"it may not list {', '.join(replica.unseen_policies)}"
    return "it does not follow every kind"
