"""Running tests on mutants: they are collected once, and each mutant is a fork in which one function is exchanged."""

from __future__ import annotations

import enum
import gc
import os
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from hypothesis import Phase, settings

from tests import quick
from tests.mutants.mutating import Mutant, mutated

__all__ = ["Fate", "run"]

_SECONDS = 120  # of CPU; a mutant that takes longer goes round in circles
_OPTIONS = ("-q", "--quick", "-n0", "--no-cov", "--assert=plain", "-p", "no:cacheprovider")


class Fate(enum.StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


def run(mutants: Sequence[Mutant], tests: Sequence[str], on_fate: Callable[[Mutant, Fate], None]) -> bool:
    """Tell the fate of each mutant; False where the tests fail on the code as it is, so that nothing can be told."""
    os.environ["CI"] = "true"  # the same examples for every mutant
    forks = _Forks(mutants, on_fate)
    pytest.main([*_OPTIONS, *tests], plugins=[forks])
    return forks.sound


class _Forks:
    """Has pytest run its tests once for each mutant, in a process of its own."""

    def __init__(self, mutants: Sequence[Mutant], on_fate: Callable[[Mutant, Fate], None]) -> None:
        self.sound = False
        self._mutants = mutants
        self._on_fate = on_fate

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed or not session.items:
            return True
        for item in session.items:
            _only_generate(getattr(item, "obj", None))
        self.sound = _fate(session, None) is Fate.SURVIVED
        for mutant in self._mutants if self.sound else ():
            self._on_fate(mutant, _fate(session, mutant))
        return True


def _only_generate(test: object) -> None:
    """Have a generated test look for no simpler example than the first that fails."""
    own = quick.settings_of(test)
    if own is not None:
        quick.give_settings(test, settings(own, phases=[Phase.explicit, Phase.generate]))


def _fate(session: pytest.Session, mutant: Mutant | None) -> Fate:
    child = os.fork()
    if child == 0:
        _be_the_child(session, mutant)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Fate.TIMED_OUT if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else Fate.KILLED
    return Fate.SURVIVED if os.waitstatus_to_exitcode(status) == 0 else Fate.KILLED


def _be_the_child(session: pytest.Session, mutant: Mutant | None) -> None:
    """Run the tests up to the first failure; ends the process."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 5))
        session.config.pluginmanager.unregister(name="terminalreporter")
        if mutant is not None:
            _exchange(mutant)
        following: list[pytest.Item | None] = [*session.items[1:], None]
        for item, after in zip(session.items, following, strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.testsfailed:
                break
        else:
            status = 0
    finally:
        os._exit(status)


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
