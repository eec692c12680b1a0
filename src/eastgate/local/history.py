"""Keeps the latest decisions of a mesh by number, for `why`."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from eastgate.control.access_log import UNREACHABLE, Observation, Repeats, read_record

_MAX_DECISIONS = 10_000
_MAX_UNREACHABLE = 100


class History:
    """Numbers decisions from 1, and keeps the latest."""

    def __init__(self) -> None:
        self._decisions: dict[int, Observation] = {}
        self._repeats = Repeats()
        self._unreachable: deque[object] = deque(maxlen=_MAX_UNREACHABLE)  # connections that no application accepted
        self._count = 0
        self._last: int | None = None

    def read(self, record: Mapping[str, Any]) -> Observation | None:
        """Return the decision in a proxy's log line, or None.

        A connection that no application accepted is reported at its begin, so that its end is not a decision.
        """
        connection = tuple(record.get(key) for key in ("workload", "port", "source"))
        if record.get("eastgate") == UNREACHABLE:
            self._unreachable.append(connection)
        elif record.get("eastgate") == "connection" and connection in self._unreachable:
            self._unreachable.remove(connection)
            return None
        return read_record(record)

    def add(self, observation: Observation) -> int:
        """Keep a decision; return its number."""
        self._count += 1
        self._decisions[self._count] = observation
        if len(self._decisions) > _MAX_DECISIONS:
            del self._decisions[next(iter(self._decisions))]
        if not self._repeats.is_repeat(observation):
            self._last = self._count
        return self._count

    def find(self, number: int | None) -> Observation | None:
        """Return the decision with this number, or with None the last one. None if it is not kept."""
        key = self._last if number is None else number
        return self._decisions.get(key) if key is not None else None

    @property
    def kept(self) -> tuple[int, int] | None:
        """Return the first and the last kept number, or None."""
        return (next(iter(self._decisions)), self._count) if self._decisions else None
