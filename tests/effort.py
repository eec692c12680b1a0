"""CPU time in units of a loop that runs beside it, so that a bound also holds on a slow or busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["effort_of"]

_T = TypeVar("_T")
_ROUNDS = 100_000
_SAMPLES = 3


def effort_of(action: Callable[[], _T]) -> tuple[_T, float]:
    """Run an action; return its result, and its CPU time in units of 100,000 rounds of a Python loop (1 to 5 ms)."""
    unit = min(_cpu_seconds(_loop)[1] for _ in range(_SAMPLES))
    result, seconds = _cpu_seconds(action)
    return result, seconds / unit


def _cpu_seconds(action: Callable[[], _T]) -> tuple[_T, float]:
    start = time.process_time()
    result = action()
    return result, time.process_time() - start


def _loop() -> int:
    total = 0
    for number in range(_ROUNDS):
        total += number & 7
    return total
