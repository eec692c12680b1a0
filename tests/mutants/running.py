"""Running the tests on a mutant: a child process, forked when everything but Eastgate and the tests is imported."""

from __future__ import annotations

import contextlib
import enum
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
from collections.abc import Sequence
from types import CodeType

from tests.mutants.mutating import Mutant, mutated
from tests.mutants.places import ROOT

__all__ = ["Fate", "fate_of", "preload"]

_SECONDS = 120  # of CPU; a mutant that takes longer goes round in circles


class Fate(enum.StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


def preload() -> None:
    """Import what all mutants share, and make sure that Eastgate is not among it."""
    for name in ("cel_expr_python", "click", "msgspec", "pytest", "re2", "yaml"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    loaded = [name for name in sys.modules if name.partition(".")[0] == "eastgate"]
    if loaded:
        raise RuntimeError(f"cannot mutate what is imported already: {loaded}")


def fate_of(mutant: Mutant | None, tests: Sequence[str]) -> Fate:
    """Run tests on a mutant, or on the code as it is, in a child process."""
    child = os.fork()
    if child == 0:
        _run(mutant, tests)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Fate.TIMED_OUT if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else Fate.KILLED
    return Fate.SURVIVED if os.waitstatus_to_exitcode(status) == 0 else Fate.KILLED


def _run(mutant: Mutant | None, tests: Sequence[str]) -> None:
    """Be the child: ends the process."""
    status = 70
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 5))
        os.environ["CI"] = "true"  # the same examples for every mutant
        os.chdir(ROOT)
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        if mutant is not None:
            sys.meta_path.insert(0, _Finder(mutant))
        import pytest

        options = ["-x", "-q", "--quick", "-n0", "--no-cov", "-p", "no:cacheprovider", "-p", "no:randomly"]
        status = int(pytest.main([*options, *tests]))
    finally:
        os._exit(status)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the mutated module instead of the one on disk."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)  # type: ignore[arg-type]
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._mutant.number)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, number: int) -> None:
        super().__init__(fullname, path)
        self._number = number

    def get_code(self, fullname: str) -> CodeType | None:
        source = self.get_source(fullname)
        assert source is not None
        return compile(mutated(source, self._number), self.path, "exec")
