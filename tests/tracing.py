"""How much of a generated test coverage looks at: its first examples, and then some.

Tracing makes an example take about three times as long, and most go through lines that others went through: half of a
run was the tracing of them. What is not traced does not count as covered, so this can only lower what coverage reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps

from coverage import Coverage

__all__ = ["trace_some_examples"]

FIRST = 10
"""How many examples of a generated test are traced at first."""

EVERY = 8
"""Which of the examples after them is traced: later ones are larger."""


@contextmanager
def trace_some_examples(test: object) -> Iterator[None]:
    """Trace only some examples of a generated test. Other tests are traced as ever."""
    handle = getattr(test, "hypothesis", None)
    coverage = Coverage.current()
    if handle is None or coverage is None:
        yield
        return
    body = handle.inner_test
    begun = 0
    tracing = True

    @wraps(body)
    def counted(*arguments: object, **named: object) -> object:
        nonlocal begun
        begun += 1
        trace(begun <= FIRST or begun % EVERY == 0)
        return body(*arguments, **named)

    def trace(wanted: bool) -> None:
        nonlocal tracing
        if wanted and not tracing:
            coverage.start()
        elif tracing and not wanted:
            coverage.stop()
        tracing = wanted

    handle.inner_test = counted
    try:
        yield
    finally:
        handle.inner_test = body
        trace(True)
