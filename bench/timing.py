"""How time is taken: CPU time of this process, in turns, several rounds, garbage collection off.

CPU time, because machines are shared; in turns, so that what disturbs one side disturbs the other; and the least of
the rounds is reported, because nothing makes a program faster than it is.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

__all__ = ["Turns", "interleaved", "median_of", "once"]

_clock = time.process_time


@contextmanager
def _quiet() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Turns:
    """Several works that take turns. `least` are the least seconds of each so far."""

    def __init__(self, *work: Callable[[], object]) -> None:
        """Each is done once, which does not count."""
        self._work = work
        self.least = [float("inf")] * len(work)
        for one in work:
            one()

    def take(self, rounds: int = 1) -> None:
        """Everybody's turn, as often as that."""
        with _quiet():
            for _ in range(rounds):
                for place, one in enumerate(self._work):
                    self.least[place] = min(self.least[place], _seconds(one))


def interleaved(rounds: int, *work: Callable[[], object]) -> list[float]:
    """The least seconds of each."""
    turns = Turns(*work)
    turns.take(rounds)
    return turns.least


def median_of(work: Sequence[Callable[[], object]]) -> float:
    """The median seconds of works that are alike, each done once."""
    with _quiet():
        took = sorted(map(_seconds, work))
    return took[len(took) // 2]


def once(work: Callable[[], object]) -> float:
    """The seconds of a single run, as a program meets it: with garbage collection."""
    return _seconds(work)


def _seconds(work: Callable[[], object]) -> float:
    start = _clock()
    work()
    return _clock() - start
