"""The time that a judgement may take."""

from __future__ import annotations

from time import monotonic

__all__ = ["Deadline", "OutOfTime"]


class OutOfTime(Exception):  # noqa: N818 - it is no error: nothing is said
    """There is no time left."""


class Deadline:
    """A moment after which work is given up, by those who do it."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else monotonic() + seconds

    def check(self) -> None:
        """Raise OutOfTime where the moment has passed."""
        if self._end is not None and monotonic() > self._end:
            raise OutOfTime
