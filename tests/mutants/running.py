"""Running tests on mutants: they are collected once, and each mutant is a fork in which one function is exchanged."""

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

__all__ = ["Fate", "run"]

_TIMES = 4  # a mutant that takes so many times the CPU time of the code as it is goes round in circles
_SECONDS = 120  # of CPU, for the code as it is
_BYTES = 4 << 30  # of memory; what goes round in circles may collect something
_OPTIONS = ("-q", "-n0", "--no-cov", "--assert=plain", "-p", "no:cacheprovider")


class Fate(enum.StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


def run(
    mutants: Sequence[Mutant], tests: Sequence[str], on_fate: Callable[[Mutant, Fate], None], *, thorough: bool = False
) -> bool:
    """Tell the fate of each mutant; False where the tests fail on the code as it is, so that nothing can be told.

    With `thorough`, generated tests look at as many examples as they do in CI.
    """
    forks = _Forks(mutants, on_fate)
    pytest.main([*_OPTIONS, *([] if thorough else ["--quick"]), *tests], plugins=[forks])
    return forks.sound


class _Forks:
    """Has pytest run its tests once for each mutant, in a process of its own."""

    def __init__(self, mutants: Sequence[Mutant], on_fate: Callable[[Mutant, Fate], None]) -> None:
        self.sound = False
        self._mutants = mutants
        self._on_fate = on_fate
        self._items: list[pytest.Item] = []
        self._running = mmap.mmap(-1, 4)  # which of the items the child is at; shared with it

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed or not session.items:
            return True
        for item in session.items:
            _fail_at_once(getattr(item, "obj", None))
        self._items = list(session.items)
        fate, seconds = self._fork(session, None, _SECONDS)
        self.sound = fate is Fate.SURVIVED
        limit = int(seconds * _TIMES) + 10
        for mutant in self._mutants if self.sound else ():
            fate, _ = self._fork(session, mutant, limit)
            if fate is Fate.KILLED:
                self._move_to_front()
            self._on_fate(mutant, fate)
        return True

    def _fork(self, session: pytest.Session, mutant: Mutant | None, limit: int) -> tuple[Fate, float]:
        """Run the tests in a process of its own; returns how it ended and the CPU time that it took."""
        child = os.fork()
        if child == 0:
            self._be_the_child(session, mutant, limit)
        _, status, used = os.wait4(child, 0)
        return _fate_of(status), used.ru_utime + used.ru_stime

    def _be_the_child(self, session: pytest.Session, mutant: Mutant | None, limit: int) -> None:
        """Run the tests up to the first failure; ends the process."""
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_DATA, (_BYTES, _BYTES))
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
        """Have the test that noticed this mutant run first on the next, which is likely near."""
        self._items.insert(0, self._items.pop(int.from_bytes(self._running[:])))


def _fail_at_once(test: object) -> None:
    """Have a generated test end its process when an example fails: nobody wants to see it, or a simpler one."""
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


def _fate_of(status: int) -> Fate:
    if os.WIFSIGNALED(status):
        return Fate.TIMED_OUT if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else Fate.KILLED
    return Fate.SURVIVED if os.waitstatus_to_exitcode(status) == 0 else Fate.KILLED


def _exchange(mutant: Mutant) -> None:
    """Give the function that a mutant is about its code, wherever it is referred to."""
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
