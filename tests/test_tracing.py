"""Coverage traces the first examples of a generated test and some of the others. It traces any other test in full."""

from __future__ import annotations

import pytest
from coverage import Coverage
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import tracing

EXPECTED = [number <= tracing.FIRST_EXAMPLES or number % tracing.EXAMPLE_STEP == 0 for number in range(1, 101)]


class Tracer:
    """A fake of coverage: two instances, one on top of the other."""

    def __init__(self) -> None:
        self.instances = [Instance(self), Instance(self)]
        self.running = list(self.instances)

    @property
    def on(self) -> bool:
        assert self.running in ([], self.instances)
        return bool(self.running)


class Instance:
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def start(self) -> None:
        self._tracer.running.append(self)

    def stop(self) -> None:
        assert self._tracer.running.pop() is self


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> Tracer:
    standing_in = Tracer()
    monkeypatch.setattr(Coverage, "current", lambda: standing_in.running[-1] if standing_in.running else None)
    return standing_in


def test_some_examples_of_a_generated_test_are_traced(tracer: Tracer) -> None:
    traced: list[bool] = []

    @settings(max_examples=100, database=None)
    @given(st.integers())
    def generated(number: int) -> None:
        traced.append(tracer.on)

    with tracing.trace_some_examples(generated):
        generated()
    assert traced == EXPECTED
    assert tracer.on


def test_some_cases_of_a_loop_are_traced(tracer: Tracer) -> None:
    assert [tracer.on for _ in tracing.trace_some(range(100))] == EXPECTED
    assert tracer.on


def test_what_comes_after_a_generated_test_that_fails_is_traced(tracer: Tracer) -> None:
    @settings(max_examples=100, database=None)
    @given(st.integers())
    def generated(number: int) -> None:
        assert tracer.on

    with pytest.raises(AssertionError), tracing.trace_some_examples(generated):
        generated()
    assert tracer.on


def test_a_test_may_ask_not_to_be_traced(tracer: Tracer) -> None:
    with tracing.without_tracing():
        assert not tracer.on
    assert tracer.on


def test_other_tests_are_traced(tracer: Tracer) -> None:
    with tracing.trace_some_examples(lambda: None):
        assert tracer.on
