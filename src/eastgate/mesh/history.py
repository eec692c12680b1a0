"""The latest decisions of a mesh by number, for whoever saw one go by and wants to know why."""

from __future__ import annotations

from eastgate.mesh.records import Observed
from eastgate.mesh.telling import Repeats

__all__ = ["History"]

_KEPT = 10_000


class History:
    """Numbers decisions from 1, and keeps the latest of them."""

    def __init__(self) -> None:
        self._seen: dict[int, Observed] = {}
        self._repeats = Repeats()
        self._count = 0
        self._last: int | None = None

    def add(self, seen: Observed) -> int:
        """Keep a decision; gives its number."""
        self._count += 1
        self._seen[self._count] = seen
        if len(self._seen) > _KEPT:
            del self._seen[next(iter(self._seen))]
        if not self._repeats.is_one(seen):
            self._last = self._count
        return self._count

    def find(self, number: int | None) -> Observed | None:
        """The decision of this number, or with None the last one; None where there is none such, or not any more."""
        found = self._last if number is None else number
        return self._seen.get(found) if found is not None else None

    @property
    def kept(self) -> tuple[int, int] | None:
        """The first and the last number that there is; None where there is none."""
        return (next(iter(self._seen)), self._count) if self._seen else None
