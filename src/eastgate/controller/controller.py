"""Runs the controller: a replica, its health and metrics, and what it writes while it leads."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack

from eastgate.controller.collecting import ReplicaCollector
from eastgate.controller.debug import DebugServer, snapshot
from eastgate.controller.election import Election
from eastgate.controller.health import HealthServer
from eastgate.controller.heartbeat import Heartbeat
from eastgate.controller.leading import Leader
from eastgate.controller.logs import RepeatedWarnings
from eastgate.controller.options import ControllerOptions
from eastgate.controller.replica import Replica
from eastgate.controller.tasks import run_together
from eastgate.controller.tracing import start_tracing
from eastgate.kubernetes import Connection
from eastgate.settings import Settings

__all__ = ["run_controller"]

_LOG = logging.getLogger(__name__)


async def run_controller(
    connection: Connection,
    settings: Settings,
    options: ControllerOptions,
    stopping: asyncio.Event,
    on_ready: asyncio.Event | None = None,
) -> None:
    """Run one replica until `stopping` is set. Raises KubeconfigError, ApiError and UnreachableError at the start."""
    async with AsyncExitStack() as stack:
        stack.callback(start_tracing(options.replica))
        heartbeat = await stack.enter_async_context(Heartbeat())
        health = await stack.enter_async_context(HealthServer(options.host, options.ports.http, heartbeat))
        replica = await stack.enter_async_context(Replica(connection, settings, options))
        health.replica = replica
        warnings = RepeatedWarnings(_LOG)
        election = Election(
            connection,
            options.namespace,
            options.replica,
            times=options.election,
            on_trouble=warnings.warn,
        )
        health.election = election
        replica.metrics.registry.register(ReplicaCollector(replica, lambda: election, lambda: heartbeat))
        if options.observation.debug_port is not None:
            debug = DebugServer(options.observation.debug_port, lambda: snapshot(replica, election, heartbeat))
            await stack.enter_async_context(debug)
        leader = Leader(replica)
        work = asyncio.create_task(run_together(replica.follow(), replica.keep_ca(), election.run(leader.run)))
        stop = asyncio.create_task(stopping.wait())
        if on_ready is not None:
            on_ready.set()
        health.following = work
        try:
            await asyncio.wait([work, stop], return_when=asyncio.FIRST_COMPLETED)
        finally:
            replica.ready = False
            for task in (work, stop):
                task.cancel()
            await asyncio.wait([work, stop])
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error
