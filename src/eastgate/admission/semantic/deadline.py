"""The time that a judgement may take."""

from __future__ import annotations

from time import monotonic

__all__ = ["Deadline"]


class Deadline:
    """A moment after which work is given up, by those who do it."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else monotonic() + seconds

    def is_past(self) -> bool:
        """Return whether the moment has passed."""
        return self._end is not None and monotonic() > self._end
