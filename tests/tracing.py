"""The code that coverage traces: some examples of a generated test or a long loop, and no test marked `untraced`.

Traced code is about three times as slow, and most examples run lines that other tests also run: tracing them took half
of a run. Code that is not traced does not count as covered, so this can only lower the reported coverage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from coverage import Coverage

__all__ = ["EXAMPLE_STEP", "FIRST_EXAMPLES", "trace_some", "trace_some_examples", "without_tracing"]

FIRST_EXAMPLES = 5
"""The number of examples at the start that are traced."""

EXAMPLE_STEP = 40
"""After these, every fortieth example is traced, since later examples are larger."""

_Case = TypeVar("_Case")


class _Tracing:
    """A switch for all tracing: a worker of xdist has two instances of coverage, one on top of the other."""

    def __init__(self) -> None:
        self._stopped: list[Coverage] = []
        self._begun = 0

    def begin_example(self) -> None:
        self._begun += 1
        if self._begun <= FIRST_EXAMPLES or self._begun % EXAMPLE_STEP == 0:
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
    """Switch coverage off in the block."""
    tracing = _Tracing()
    tracing.stop()
    try:
        yield
    finally:
        tracing.resume()


@contextmanager
def trace_some_examples(test: object) -> Iterator[None]:
    """Trace some examples of a generated test, or all of any other test."""
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
    """Yield all cases, and trace the code that runs for some of them."""
    tracing = _Tracing()
    try:
        for case in cases:
            tracing.begin_example()
            yield case
    finally:
        tracing.resume()
