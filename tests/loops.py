"""The event loops of servers: asyncio's own, and uvloop, which has different transport classes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import uvloop

__all__ = ["LOOPS", "run_on"]

LOOPS: Mapping[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


def run_on(loop: str, test: Coroutine[Any, Any, None]) -> None:
    """Run a test on an event loop."""
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(test)
