"""Envoys as processes of the benchmark: on a core of their own, with their CPU time and memory measured."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from eastgate.envoy.config.typed import Plain
from eastgate.local.machine import launch
from eastgate.local.machine.envoy import find_envoy

__all__ = ["OTHERS", "UNDER_TEST", "Envoy", "on_cores", "until"]

_FLAGS = (  # as the mesh starts them
    "--disable-hot-restart",
    "--reject-unknown-dynamic-fields",
    *("--concurrency", "1"),
    *("--drain-time-s", "0"),
    *("--drain-strategy", "immediate"),
    *("--log-level", "warning"),
)
_CORES = sorted(os.sched_getaffinity(0))
UNDER_TEST = frozenset(_CORES[:1])
OTHERS = frozenset(_CORES[1:] or _CORES)


class Envoy:
    """One Envoy process. Its access log is written and discarded."""

    def __init__(self, bootstrap: Plain, node: str, log: Path, cores: frozenset[int] = frozenset(_CORES)) -> None:
        command = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(find_envoy()), *_FLAGS]
        self._log = log
        with on_cores(cores), log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, "--service-node", node, "--service-cluster", "bench"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd="/",
                start_new_session=True,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(bootstrap).encode())
        self._process.stdin.close()

    def __enter__(self) -> Envoy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self._log.read_text(encoding="utf-8", errors="replace")[-2_000:], file=sys.stderr)
        self._process.kill()
        self._process.wait()

    def cpu_seconds(self) -> float:
        """Return the CPU time of all its threads, to the nanosecond."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(one.read_text(encoding="ascii").split()[0]) for one in tasks) / 1e9

    def resident_bytes(self) -> int:
        """Return its resident memory."""
        held = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(held) * resource.getpagesize()


@contextmanager
def on_cores(cores: frozenset[int]) -> Iterator[None]:
    """Run this thread, and the processes that it starts, on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def until(ready: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait until `ready()` is true. Raises TimeoutError with the text `what`."""
    ends = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > ends:
            raise TimeoutError(f"{what} after {seconds:.0f} s")
        time.sleep(0.01)
