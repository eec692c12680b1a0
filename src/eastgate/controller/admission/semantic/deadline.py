"""The time that a judgement may take."""

from __future__ import annotations

from time import thread_time


class Deadline:
    """An amount of work after which the thread that does it gives up.

    It is seconds of the processor, from now on: what else the machine does is no reason to know less of a change.
    """

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else thread_time() + seconds

    def is_past(self) -> bool:
        """Return whether the thread has used the time up."""
        return self._end is not None and thread_time() > self._end
