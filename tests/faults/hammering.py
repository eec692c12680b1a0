"""Calls without a pause, with their results."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

__all__ = ["Answers", "hammering"]

_PAUSE_SECONDS = 0.002  # without a pause the calls would use both cores fully


@dataclass
class Answers:
    """The count of each status, for each kind of call."""

    of: dict[str, Counter[int]] = field(default_factory=dict)

    async def more(self, name: str, number: int = 20) -> None:
        """Wait until `number` more calls of a kind have an answer."""
        wanted = self.of[name].total() + number
        while self.of[name].total() < wanted:
            await asyncio.sleep(_PAUSE_SECONDS)

    def only(self, name: str, *statuses: int) -> bool:
        """Return whether there are answers, and all have one of these statuses."""
        return bool(self.of[name]) and set(self.of[name]) <= set(statuses)


@asynccontextmanager
async def hammering(calls: Mapping[str, Callable[[], Awaitable[int]]]) -> AsyncIterator[Answers]:
    """Repeat each of these calls until the block ends."""
    answers = Answers({name: Counter() for name in calls})
    stopping = asyncio.Event()

    async def repeat(name: str, make: Callable[[], Awaitable[int]]) -> None:
        while not stopping.is_set():
            answers.of[name][await make()] += 1
            await asyncio.sleep(_PAUSE_SECONDS)

    tasks = [asyncio.create_task(repeat(name, make)) for name, make in calls.items()]
    try:
        yield answers
    finally:
        stopping.set()  # every call may finish
        await asyncio.gather(*tasks)
