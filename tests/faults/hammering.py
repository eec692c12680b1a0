"""Calls without a pause, and what came of each of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

__all__ = ["Answers", "hammering"]

_PAUSE = 0.002  # or the calls would be all that two cores do


@dataclass
class Answers:
    """How often each answer came, for each kind of call."""

    of: dict[str, Counter[int]] = field(default_factory=dict)

    async def more(self, name: str, number: int = 20) -> None:
        """Waits until so many more calls of a kind were answered."""
        wanted = self.of[name].total() + number
        while self.of[name].total() < wanted:
            await asyncio.sleep(_PAUSE)

    def only(self, name: str, *statuses: int) -> bool:
        """Whether no other answer came, and one did."""
        return bool(self.of[name]) and set(self.of[name]) <= set(statuses)


@asynccontextmanager
async def hammering(calls: Mapping[str, Callable[[], Awaitable[int]]]) -> AsyncIterator[Answers]:
    """Makes each of these calls over and over while the block lasts."""
    answers = Answers({name: Counter() for name in calls})
    stopping = asyncio.Event()

    async def repeat(name: str, make: Callable[[], Awaitable[int]]) -> None:
        while not stopping.is_set():
            answers.of[name][await make()] += 1
            await asyncio.sleep(_PAUSE)

    tasks = [asyncio.create_task(repeat(name, make)) for name, make in calls.items()]
    try:
        yield answers
    finally:
        stopping.set()  # no call is broken off
        await asyncio.gather(*tasks)
