"""A schedule of keys, such as policies whose status must be checked: each is due once, and none too often."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from eastgate.basics.records import dataclass

K = TypeVar("K")


def _jitter() -> float:
    return random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class TokenBucket:
    """Permits for at most `burst` operations at once, and `per_second` more after that. The caller passes the time."""

    def __init__(self, burst: int, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._tokens = float(burst)
        self._filled_at: float | None = None

    def wait(self, now: float) -> float:
        """Return the seconds until there is a permit."""
        since = 0.0 if self._filled_at is None else max(0.0, now - self._filled_at)
        self._tokens = min(float(self._burst), self._tokens + since * self._per_second)
        self._filled_at = now
        return max(0.0, (1 - self._tokens) / self._per_second)

    def take(self, now: float) -> bool:
        """Take a permit, if there is one."""
        if self.wait(now) > 0:
            return False
        self._tokens -= 1
        return True


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits for operations, in seconds: between two operations on a key, and between retries, which grow.

    A marked key is due after a `delay`, since more changes may follow. At most `burst` operations run at once, and
    `per_second` after that.
    """

    delay: float = 0.1
    between: float = 0.5
    first_retry: float = 0.2
    longest_retry: float = 60.0
    burst: int = 100
    per_second: float = 50.0


class Schedule(Generic[K]):
    """Keys that are due now or later. It has no clock: the caller passes the time."""

    def __init__(self, pace: Pace | None = None, jitter: Callable[[], float] = _jitter) -> None:
        self._pace = pace or Pace()
        self._jitter = jitter
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._pushed = 0
        self._rest: dict[K, float] = {}  # the earliest next time of each key
        self._failures: dict[K, int] = {}
        self._bucket = TokenBucket(self._pace.burst, self._pace.per_second)

    def __len__(self) -> int:
        return len(self._due)

    def mark(self, keys: Iterable[K], now: float) -> None:
        """Make keys due as soon as allowed. A key that waits for a retry is not due sooner."""
        for key in keys:
            if key not in self._due:
                self._push(key, max(now + self._pace.delay, self._rest.get(key, now)))

    def take(self, now: float) -> K | None:
        """Remove and return the key that has been due for longest, or None if no key is due and allowed."""
        if self.wait(now) != 0:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        return key

    def spend(self, key: K, now: float) -> None:
        """Record an operation on a key: the key rests for a while, and other keys may have to wait."""
        self._bucket.take(now)
        self._rest[key] = now + self._pace.between

    def rest(self, key: K, now: float, seconds: float) -> None:
        """Let a key rest for a while, since its check takes long."""
        self._rest[key] = max(self._rest.get(key, now), now + seconds)

    def succeed(self, key: K) -> None:
        """Record a success."""
        self._failures.pop(key, None)

    def fail(self, key: K, now: float, asked: float | None = None) -> None:
        """Schedule a retry of a key: later after each failure, and not before the `asked` seconds of the server."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = min(self._pace.first_retry * 2.0 ** min(failures - 1, 30), self._pace.longest_retry) * self._jitter()
        self._rest[key] = now + max(wait, asked or 0.0)
        self._push(key, self._rest[key])

    def forget(self, key: K) -> None:
        """Forget a key that is gone."""
        for known in (self._due, self._rest, self._failures):
            known.pop(key, None)

    def wait(self, now: float) -> float | None:
        """Return the seconds until a key is due and allowed, or None without keys."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)  # forgotten, or due at another time
        if not self._heap:
            return None
        return max(0.0, self._heap[0][0] - now, self._bucket.wait(now))

    def _push(self, key: K, due: float) -> None:
        self._due[key] = due
        self._pushed += 1
        heapq.heappush(self._heap, (due, self._pushed, key))
