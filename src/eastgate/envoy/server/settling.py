"""Waits until proxies have acknowledged everything. Nothing polls: the last acknowledgement wakes those who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Settling:
    """The waiting tasks. `is_settled` is asked for a node, or for all of them with None."""

    def __init__(self, is_settled: Callable[[str | None], bool]) -> None:
        self._is_settled = is_settled
        self._waiting: dict[asyncio.Future[None], str | None] = {}

    async def wait(self, node: str | None, timeout: float | None) -> None:
        """Return as soon as it is settled. Raises TimeoutError."""
        if self._is_settled(node):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = node
        try:
            async with asyncio.timeout(timeout):
                await future
        finally:
            self._waiting.pop(future, None)

    def wake_settled(self) -> None:
        """Wake those who need not wait any more, after an acknowledgement or a disconnect."""
        if not self._waiting:
            return
        settled = {node: self._is_settled(node) for node in set(self._waiting.values())}
        for future, node in self._waiting.items():
            if settled[node] and not future.done():
                future.set_result(None)
