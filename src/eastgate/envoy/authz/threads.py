"""Answers checks on threads. A check whose caller has gone does not wait for a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor
from typing import TypeVar

_Check = TypeVar("_Check")
_Reply = TypeVar("_Reply")


def answer_on_thread(threads: Executor, answer: Callable[[_Check], _Reply], check: _Check) -> asyncio.Future[_Reply]:
    """Return the answer to a check, which comes later. If it is cancelled, the check is forgotten at once."""
    waiting = [check]

    def run() -> _Reply:
        for taken in tuple(waiting):
            return answer(taken)
        raise CancelledError

    coming = asyncio.get_running_loop().run_in_executor(threads, run)
    coming.add_done_callback(lambda _: waiting.clear())
    return coming
