"""Runs the controller: a replica, its health and metrics, and what it writes while it leads."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack

from eastgate.controller.election import Election
from eastgate.controller.health import HealthServer
from eastgate.controller.leading import Leader
from eastgate.controller.options import ControllerOptions
from eastgate.controller.replica import Replica
from eastgate.controller.tasks import run_together
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
        health = await stack.enter_async_context(HealthServer(options.host, options.ports.http))
        replica = await stack.enter_async_context(Replica(connection, settings, options))
        health.replica = replica
        election = Election(
            connection, options.namespace, options.replica, times=options.election, on_trouble=_log_trouble
        )
        health.election = election
        leader = Leader(replica)
        work = asyncio.create_task(run_together(replica.follow(), replica.keep_ca(), election.run(leader.run)))
        stop = asyncio.create_task(stopping.wait())
        if on_ready is not None:
            on_ready.set()
        try:
            await asyncio.wait([work, stop], return_when=asyncio.FIRST_COMPLETED)
        finally:
            replica.ready = False
            for task in (work, stop):
                task.cancel()
            await asyncio.wait([work, stop])
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error


def _log_trouble(what: str, error: Exception) -> None:
    _LOG.warning("%s: %s", what, error)
