"""A heartbeat of the event loop: how late it was, and since when it has not beaten."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Final

_INTERVAL: Final = 1.0


class Heartbeat:
    """Beats once a second. Use it with `async with`."""

    def __init__(self) -> None:
        self._beaten_at = time.monotonic()
        self._task: asyncio.Task[None] | None = None
        self.lag = 0.0
        """By how many seconds the last beat was late."""

    async def __aenter__(self) -> Heartbeat:
        self._beaten_at = time.monotonic()
        self._task = asyncio.create_task(self._beat(), name="heartbeat")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def age(self) -> float:
        """Return for how many seconds there was no beat."""
        return time.monotonic() - self._beaten_at

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL)
            now = time.monotonic()
            self.lag = max(0.0, now - self._beaten_at - _INTERVAL)
            self._beaten_at = now
