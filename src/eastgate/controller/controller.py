"""Runs the controller: a replica, its health and metrics, and what it writes while it leads."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from eastgate.basics.tasks import BackgroundTask, log_failure, run_together
from eastgate.control.authorizer.metrics import task_failures
from eastgate.controller.collecting import ReplicaCollector
from eastgate.controller.debug import DebugServer, snapshot
from eastgate.controller.election import Election
from eastgate.controller.health import HealthServer
from eastgate.controller.heartbeat import Heartbeat
from eastgate.controller.leading import Leader
from eastgate.controller.logs import log_recovery, log_trouble
from eastgate.controller.options import ControllerOptions
from eastgate.controller.replica import Replica
from eastgate.controller.tracing import start_tracing
from eastgate.reading.kubernetes import Connection
from eastgate.settings import Settings

_LOG = logging.getLogger(__name__)
_LOOK_AGAIN: Final = 0.5  # seconds between two looks at whether the replica is ready


async def run_controller(
    connection: Connection,
    settings: Settings,
    options: ControllerOptions,
    stopping: asyncio.Event,
    on_ready: asyncio.Event | None = None,
) -> None:
    """Run one replica until `stopping` is set. Raises KubeconfigError, ApiError and UnreachableError at the start.

    If it fails later, another replica takes its place after a pause, and reads everything again.
    """
    async with AsyncExitStack() as stack:
        stack.callback(start_tracing(options.replica))
        heartbeat = await stack.enter_async_context(Heartbeat())
        health = await stack.enter_async_context(HealthServer(options.host, options.ports.http, heartbeat))
        running = _RunningReplica(connection, settings, options, health, heartbeat)
        stack.push_async_callback(running.end)
        await running.begin()
        replicas = BackgroundTask("the replica", running.go_on, running.on_failure)
        stack.push_async_callback(replicas.start().stop)
        if on_ready is not None:
            on_ready.set()
        await stopping.wait()
        _LOG.info("%s stops", options.replica, extra={"replica": options.replica})
        health.replica = None


class _RunningReplica:
    """The replica of a process. After a failure another one takes its place."""

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
        """Start a replica, and have probes and metrics show it."""
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

    async def go_on(self) -> None:
        """Follow the cluster and take part in the election, until one of them fails."""
        try:
            replica, election = self._current or await self.begin()
            leader = Leader(replica)
            electing = BackgroundTask("the election of a leader", partial(election.run, leader.run), replica.on_failure)
            await run_together(
                replica.follow(),
                BackgroundTask("the CA", replica.keep_ca, replica.on_failure).run(),
                BackgroundTask("giving memory back", replica.keep_small, replica.on_failure).run(),
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
    """Log when a replica becomes ready, and when it is not ready any more."""
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
        await asyncio.sleep(_LOOK_AGAIN)


def _reason_not_ready(replica: Replica) -> str:
    if replica.unseen_policies:
        return f"it may not list {', '.join(replica.unseen_policies)}"
    return "it does not follow every kind"
