"""What coverage looks at: of a generated test, or a loop over many cases, some; of a test marked `untraced` nothing.

Tracing makes code take about three times as long, and most of these go through lines that other tests go through: half
of a run was the tracing of them. What is not traced does not count as covered, so this can only lower what coverage
reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from coverage import Coverage

__all__ = ["EVERY", "FIRST", "trace_some", "trace_some_examples", "without_tracing"]

FIRST = 5
"""How many examples are traced at first."""

EVERY = 40
"""Which of the examples after them are traced: every fortieth, as later ones are larger."""

_Case = TypeVar("_Case")


class _Tracing:
    """Tracing, which can be switched off as a whole: a worker of xdist has two instances, one on top of the other."""

    def __init__(self) -> None:
        self._stopped: list[Coverage] = []
        self._begun = 0

    def begin_example(self) -> None:
        self._begun += 1
        if self._begun <= FIRST or self._begun % EVERY == 0:
            self.resume()
        else:
            self.stop()

    def stop(self) -> None:
        while (coverage := Coverage.current()) is not None:
            coverage.stop()
            self._stopped.append(coverage)

    def resume(self) -> None:
        while self._stopped:
            self._stopped.pop().start()


@contextmanager
def without_tracing() -> Iterator[None]:
    """Have coverage look at nothing."""
    tracing = _Tracing()
    tracing.stop()
    try:
        yield
    finally:
        tracing.resume()


@contextmanager
def trace_some_examples(test: object) -> Iterator[None]:
    """Have coverage look at some examples of a generated test; at all of any other test."""
    handle = getattr(test, "hypothesis", None)
    if handle is None or Coverage.current() is None:
        yield
        return
    body = handle.inner_test
    tracing = _Tracing()

    @wraps(body)
    def counted(*arguments: Any, **named: Any) -> object:
        tracing.begin_example()
        return body(*arguments, **named)

    handle.inner_test = counted
    try:
        yield
    finally:
        handle.inner_test = body
        tracing.resume()


def trace_some(cases: Iterable[_Case]) -> Iterator[_Case]:
    """Yield all cases, and have coverage look at what is done with some of them."""
    tracing = _Tracing()
    try:
        for case in cases:
            tracing.begin_example()
            yield case
    finally:
        tracing.resume()
