"""How time is taken: CPU time of this process, several rounds, what is compared in turns, garbage collection off.

CPU time, because machines are shared; in turns, so that what disturbs one side disturbs the other; and the least of
the rounds is reported, because nothing makes a program faster than it is.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

__all__ = ["clock", "interleaved", "median_of", "once"]

clock = time.process_time


@contextmanager
def _quiet() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def interleaved(rounds: int, *work: Callable[[], object]) -> list[float]:
    """The least seconds of each, after one round that does not count."""
    for one in work:
        one()
    best = [float("inf")] * len(work)
    with _quiet():
        for _ in range(rounds):
            for place, one in enumerate(work):
                start = clock()
                one()
                best[place] = min(best[place], clock() - start)
    return best


def once(work: Callable[[], object]) -> float:
    """The seconds of a single run, as a program meets it: with garbage collection."""
    start = clock()
    work()
    return clock() - start


def median_of(work: Sequence[Callable[[], object]]) -> float:
    """The median seconds of works that are alike, each done once."""
    took = []
    with _quiet():
        for one in work:
            start = clock()
            one()
            took.append(clock() - start)
    return sorted(took)[len(took) // 2]
