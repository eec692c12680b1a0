"""A cache with a limit on the total size of its values, and not on their number.

A namespace owner chooses how long an expression or a policy is. With a limit on the number alone, the owner could fill
the memory, even with policies that were deleted later.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SizedCache(Generic[K, V]):
    """The most recently used values, up to a total size. The last value is always kept. It is thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._entries: dict[K, tuple[V, int]] = {}  # the most recently used one is last
        self._lock = Lock()

    def get(self, key: K, make: Callable[[], tuple[V, int]]) -> V:
        """Return the value of a key. If it is missing, `make` returns it and its size, in any unit."""
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._entries[key] = entry
                return entry[0]
        value, size = make()
        with self._lock:
            self._drop(key)
            self._entries[key] = value, size
            self._total += size
            while self._total > self._most and len(self._entries) > 1:
                self._drop(next(iter(self._entries)))
        return value

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._entries.clear()
            self._total = 0

    def _drop(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._total -= entry[1]
