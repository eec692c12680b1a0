"""Tests on mutants: pytest collects them once, and runs each mutant in a fork in which one function is replaced."""

from __future__ import annotations

import enum
import gc
import mmap
import os
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from hypothesis.errors import HypothesisException

from tests.mutants.mutating import Mutant, mutated

__all__ = ["MutantResult", "run"]

_MAX_CPU_RATIO = 4  # of a mutant to the unchanged code; a slower mutant is taken for an endless loop
_MAX_CPU_SECONDS = 120  # for the unchanged code
_MAX_MEMORY_BYTES = 4 << 30  # an endless loop may allocate memory
_OPTIONS = ("-q", "-n0", "--no-cov", "--assert=plain", "-p", "no:cacheprovider")


class MutantResult(enum.StrEnum):
    """The result of the tests on a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


def run(
    mutants: Sequence[Mutant],
    tests: Sequence[str],
    on_result: Callable[[Mutant, MutantResult], None],
    *,
    thorough: bool = False,
) -> bool:
    """Pass the result of each mutant to `on_result`. Return False if the tests fail on the unchanged code.

    With `thorough`, generated tests draw as many examples as in CI.
    """
    forks = _Forks(mutants, on_result)
    pytest.main([*_OPTIONS, *([] if thorough else ["--quick"]), *tests], plugins=[forks])
    return forks.sound


class _Forks:
    """A pytest plugin that runs the tests once for each mutant, in a process of its own."""

    def __init__(self, mutants: Sequence[Mutant], on_result: Callable[[Mutant, MutantResult], None]) -> None:
        self.sound = False
        self._mutants = mutants
        self._on_result = on_result
        self._items: list[pytest.Item] = []
        self._running = mmap.mmap(-1, 4)  # the index of the item that the child runs, in shared memory

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed or not session.items:
            return True
        for item in session.items:
            _fail_at_once(getattr(item, "obj", None))
        self._items = list(session.items)
        result, seconds = self._fork(session, None, _MAX_CPU_SECONDS)
        self.sound = result is MutantResult.SURVIVED
        limit = int(seconds * _MAX_CPU_RATIO) + 10
        for mutant in self._mutants if self.sound else ():
            result, _ = self._fork(session, mutant, limit)
            if result is MutantResult.KILLED:
                self._move_to_front()
            self._on_result(mutant, result)
        return True

    def _fork(self, session: pytest.Session, mutant: Mutant | None, limit: int) -> tuple[MutantResult, float]:
        """Run the tests in a process of its own. Return its result and its CPU time."""
        child = os.fork()
        if child == 0:
            self._run_child(session, mutant, limit)
        _, status, used = os.wait4(child, 0)
        return _result_of(status), used.ru_utime + used.ru_stime

    def _run_child(self, session: pytest.Session, mutant: Mutant | None, limit: int) -> None:
        """Run the tests up to the first failure, and end the process."""
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_DATA, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
            session.config.pluginmanager.unregister(name="terminalreporter")
            if mutant is not None:
                _exchange(mutant)
            following: list[pytest.Item | None] = [*self._items[1:], None]
            for index, (item, after) in enumerate(zip(self._items, following, strict=True)):
                self._running[:] = index.to_bytes(4)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if session.testsfailed:
                    break
            else:
                status = 0
        finally:
            os._exit(status)

    def _move_to_front(self) -> None:
        """Move the test that noticed this mutant to the front, since the next mutant is likely near."""
        self._items.insert(0, self._items.pop(int.from_bytes(self._running[:])))


def _fail_at_once(test: object) -> None:
    """Make a generated test end its process when an example fails, instead of simplifying and reporting the example."""
    generated = getattr(test, "hypothesis", None)
    if generated is None:
        return
    inner = generated.inner_test

    @wraps(inner)
    def judged(*values: object, **named: object) -> None:
        try:
            inner(*values, **named)
        except HypothesisException:
            raise
        except Exception:
            os._exit(1)

    generated.inner_test = judged


def _result_of(status: int) -> MutantResult:
    if os.WIFSIGNALED(status):
        return (
            MutantResult.TIMED_OUT if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else MutantResult.KILLED
        )
    return MutantResult.SURVIVED if os.waitstatus_to_exitcode(status) == 0 else MutantResult.KILLED


def _exchange(mutant: Mutant) -> None:
    """Replace the code of the mutant's function, so that every reference to the function gets it."""
    source = mutant.file.read_text(encoding="utf-8")
    module = compile(mutated(source, mutant.number), str(mutant.file), "exec")
    (code,) = (code for code in _codes(module) if _is_at(code, mutant))
    functions = [one for one in gc.get_objects() if isinstance(one, FunctionType) and _is_of(one.__code__, mutant)]
    for function in functions:
        function.__code__ = code
    if not functions:
        raise LookupError(f"nothing has imported {mutant}")


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_at(code: CodeType, mutant: Mutant) -> bool:
    return (code.co_qualname, code.co_firstlineno) == (mutant.function, mutant.starts)


def _is_of(code: CodeType, mutant: Mutant) -> bool:
    return _is_at(code, mutant) and Path(code.co_filename) == mutant.file
