"""A cache that is bounded by the size of what it holds, and not by a number of entries.

A namespace owner chooses how long an expression or a policy is. A cache of a thousand entries then holds as much as
they like, also after the policy was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SizedCache(Generic[K, V]):
    """The values that were used last, up to a total size. The last one is kept whatever its size. It is thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._entries: dict[K, tuple[V, int]] = {}  # the one that was used last is at the end
        self._lock = Lock()

    def get(self, key: K, make: Callable[[], tuple[V, int]]) -> V:
        """Return the value of a key. If it is not here, `make` returns it and its size, in any unit."""
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
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._total = 0

    def _drop(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._total -= entry[1]
