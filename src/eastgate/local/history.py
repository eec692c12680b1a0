"""Keeps the latest decisions of a mesh by number, for `why`."""

from __future__ import annotations

from eastgate.control.access_log import Observation, Repeats

_KEPT = 10_000


class History:
    """Numbers decisions from 1, and keeps the latest of them."""

    def __init__(self) -> None:
        self._decisions: dict[int, Observation] = {}
        self._repeats = Repeats()
        self._count = 0
        self._last: int | None = None

    def add(self, observation: Observation) -> int:
        """Keep a decision; return its number."""
        self._count += 1
        self._decisions[self._count] = observation
        if len(self._decisions) > _KEPT:
            del self._decisions[next(iter(self._decisions))]
        if not self._repeats.is_repeat(observation):
            self._last = self._count
        return self._count

    def find(self, number: int | None) -> Observation | None:
        """Return the decision of this number, or with None the last one; None where there is none, or not any more."""
        key = self._last if number is None else number
        return self._decisions.get(key) if key is not None else None

    @property
    def kept(self) -> tuple[int, int] | None:
        """Return the first and the last number that is kept; None where there is none."""
        return (next(iter(self._decisions)), self._count) if self._decisions else None
