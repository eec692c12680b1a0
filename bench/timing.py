"""Measurement of time: the CPU time of this process, in turns, in several rounds, without garbage collection.

CPU time, because machines are shared. In turns, so that a disturbance affects all sides. The median of the rounds,
which are spread over the run, so that a busy minute spoils no number.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median

__all__ = ["clock", "interleaved", "median_of", "once", "quiet", "seconds_of", "warmed"]

clock = time.process_time

_SHORT_SECONDS = 0.02  # longer work has cold caches in only a small part of its time


@contextmanager
def quiet() -> Iterator[None]:
    """Switch off garbage collection in the `with` block."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def warmed(work: Callable[[], object]) -> float:
    """Return the seconds of one run. Short work runs once before, since the caches hold the data of other work.

    The caller must use `quiet`.
    """
    first = seconds_of(work)
    return seconds_of(work) if first < _SHORT_SECONDS else first


def interleaved(rounds: int, *work: Callable[[], object]) -> list[float]:
    """Return the median seconds of each work, in turns. Each runs once before, unmeasured."""
    for one in work:
        one()
    with quiet():
        took = [[seconds_of(one) for one in work] for _ in range(rounds)]
    return [median(column) for column in zip(*took, strict=True)]


def median_of(work: Sequence[Callable[[], object]]) -> float:
    """Return the median seconds of similar works, each run once."""
    with quiet():
        return median(map(seconds_of, work))


def once(work: Callable[[], object]) -> float:
    """Return the seconds of a single run with garbage collection, as in a real program."""
    return seconds_of(work)


def seconds_of(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one run."""
    start = clock()
    work()
    return clock() - start
