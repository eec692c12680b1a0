"""How time is taken: CPU time of this process, in turns, several rounds, garbage collection off.

CPU time, because machines are shared; in turns, so that what disturbs one side disturbs the other; and the median of
the rounds, which are spread over the run, so that a busy minute spoils none of the numbers.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median

__all__ = ["clock", "interleaved", "median_of", "once", "quiet", "seconds_of", "warmed"]

clock = time.process_time

_SHORT = 0.02  # seconds; what takes longer finds the caches cold only in a small part of its time


@contextmanager
def quiet() -> Iterator[None]:
    """Without garbage collection."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def warmed(work: Callable[[], object]) -> float:
    """The seconds of a work whose turn it is. What is short is done once before: the caches are full of others' things.

    To be called in `quiet`.
    """
    first = seconds_of(work)
    return seconds_of(work) if first < _SHORT else first


def interleaved(rounds: int, *work: Callable[[], object]) -> list[float]:
    """The median seconds of each, in turns. Each is done once before, which does not count."""
    for one in work:
        one()
    with quiet():
        took = [[seconds_of(one) for one in work] for _ in range(rounds)]
    return [median(column) for column in zip(*took, strict=True)]


def median_of(work: Sequence[Callable[[], object]]) -> float:
    """The median seconds of works that are alike, each done once."""
    with quiet():
        return median(map(seconds_of, work))


def once(work: Callable[[], object]) -> float:
    """The seconds of a single run, as a program meets it: with garbage collection."""
    return seconds_of(work)


def seconds_of(work: Callable[[], object]) -> float:
    """The CPU seconds of one run."""
    start = clock()
    work()
    return clock() - start
