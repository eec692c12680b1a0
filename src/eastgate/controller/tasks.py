"""Work that goes on in the background and must not end: what fails is noted, and begins again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from eastgate.kubernetes.reflector import RetryDelay

__all__ = ["Nudge", "keep_running", "run_together"]

_LOG = logging.getLogger(__name__)


class Nudge:
    """Wakes whoever waits for it, once for any number of nudges, and by itself after a while."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __call__(self) -> None:
        self._event.set()

    async def wait(self, seconds: float | None = None) -> None:
        """Wait for a nudge, at most for so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()


async def keep_running(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run work again and again, until cancelled; after a failure with a pause."""
    backoff = RetryDelay(first=0.5, most=30.0)
    while True:
        try:
            await work()
            backoff.reset()
        except Exception:
            _LOG.exception("%s failed, and begins again", name)
            await asyncio.sleep(backoff.next())


async def run_together(*work: Awaitable[None]) -> None:
    """Run several things until one ends; then end all. Raises what that one raised."""
    async with asyncio.TaskGroup() as group:
        for each in work:
            group.create_task(_awaited(each))


async def _awaited(work: Awaitable[None]) -> None:
    await work
