"""Runs background work that must not end: it reports a failure, and restarts the work after a pause."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final

_LOG: Final = logging.getLogger(__name__)
_FAILING: Final = "a background task fails"

OnFailure = Callable[[str, Exception], None]
"""A callback that gets the name of the failed work, and the error."""


class RetryDelay:
    """Seconds to wait before the next try: longer each time, with jitter, until a try succeeds."""

    def __init__(self, first: float = 0.2, most: float = 30.0) -> None:
        self.most = most
        self._first = first
        self._next = first

    def reset(self) -> None:
        """Start with short waits again."""
        self._next = self._first

    def next(self, asked: float | None = None) -> float:
        """Return the seconds to wait, at least as many as the server `asked` for."""
        seconds = self._next * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        self._next = min(self._next * 2, self.most)
        return max(seconds, asked or 0.0)


class Nudge:
    """Wakes a waiting task, once for any number of nudges, or after a timeout."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __call__(self) -> None:
        self._event.set()

    async def wait(self, seconds: float | None = None) -> None:
        """Wait for a nudge, at most for this number of seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()


def log_failure(name: str, error: Exception) -> None:
    """Log a failure with its traceback."""
    _LOG.error("%s failed, and begins again", name, exc_info=error, extra={"task": name, "trouble": _FAILING})


def innermost(error: Exception) -> Exception:
    """Return the error inside of groups that have one error each."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def describe_failure(error: Exception) -> str:
    """Return an error in one line: its type, its message, and its notes."""
    cause = innermost(error)
    return "; ".join([f"{type(cause).__name__}: {cause}", *getattr(cause, "__notes__", ())])


class BackgroundTask:
    """Work that must not end. After a failure, the task reports the error, and restarts the work after a growing pause.

    `work` is one round: when it returns, the next round begins at once. Long work calls `works` after the point of the
    last failure. Until then `failure` holds the last error.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        on_failure: OnFailure = log_failure,
        delay: RetryDelay | None = None,
    ) -> None:
        self.name = name
        self._work = work
        self._on_failure = on_failure
        self._delay = delay or RetryDelay(first=0.5)
        self._task: asyncio.Task[None] | None = None
        self.failure: Exception | None = None

    @property
    def is_working(self) -> bool:
        """Return whether the work runs: it was started, has not ended, and does not wait after a failure."""
        return self.failure is None and self._task is not None and not self._task.done()

    def start(self) -> BackgroundTask:
        """Run the work in a task of its own, until `stop`."""
        self._task = asyncio.create_task(self.run(), name=self.name)
        return self

    def cancel(self) -> None:
        """Cancel the task, without waiting for its end."""
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        """Cancel the task, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def works(self) -> None:
        """Note that the work succeeds."""
        if self.failure is not None:
            _LOG.info("%s works again", self.name, extra={"task": self.name, "over": _FAILING})
        self.failure = None
        self._delay.reset()

    async def run(self) -> None:
        """Run the work again and again, until cancelled."""
        while True:
            await self._run_once()
            await asyncio.sleep(0)  # work without waits must not block other tasks

    async def _run_once(self) -> None:
        began = time.monotonic()
        try:
            await _uncancelled(self._work())
        except Exception as error:
            await self._pause(error, began)
        else:
            self.works()

    async def _pause(self, error: Exception, began: float) -> None:
        self.failure = error
        if time.monotonic() - began > self._delay.most:  # it worked for long
            self._delay.reset()
        try:
            self._on_failure(self.name, error)
        except Exception as broken:
            log_failure(f"the report that {self.name} failed", broken)
        await asyncio.sleep(self._delay.next())


async def run_together(*work: Awaitable[None]) -> None:
    """Run several awaitables until one fails, then cancel the others. Raises an ExceptionGroup with the errors.

    A cancellation from outside stays a cancellation, whatever the work raises at its end. `asyncio.TaskGroup` would
    raise those errors instead, and the caller would treat the end as a failure.
    """
    tasks = [asyncio.ensure_future(_uncancelled(each)) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    errors = [end for end in ended if isinstance(end, Exception)]
    if errors:
        raise ExceptionGroup("work that runs together failed", errors)


async def _uncancelled(work: Awaitable[None]) -> None:
    """Await the work. Raises RuntimeError if a task that the work waited for was cancelled, and not this task."""
    try:
        await work
    except asyncio.CancelledError as error:
        current = asyncio.current_task()
        if current is None or current.cancelling():
            raise
        raise RuntimeError(f"a task that it waited for was cancelled: {error}") from error
