"""Runs several processes of one authorizer: they share ports, and a process that ends by itself is started again.

The kernel shares ports (SO_REUSEPORT). All processes accept from the same unix socket for HTTP. Each process has its
own unix socket for gRPC, with its number at the end of the path.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from eastgate.control.authorizer.locating import ListenAddress, listen
from eastgate.control.authorizer.log import SHARED_FOLDER, DecisionLog

BAD_INPUT: Final = 2
"""The exit status of a process that could not start and would fail again. A process that has served is started again
after any status.
"""

_POLL_SECONDS: Final = 0.1
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.1, 10.0  # before a process is started again
_STABLE_SECONDS: Final = 30.0  # after these, a process counts as started successfully


class _StopSignal:
    """A flag that SIGTERM and SIGINT set."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


def note_serving(number: int) -> None:
    """Mark this process as serving, for the first process."""
    (Path(os.environ[SHARED_FOLDER]) / f"serving-{number}").touch()


class _Worker:
    """A worker and its current process. `serving` is a file that exists once the process has served."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], serving: Path) -> None:
        self._start = start
        self._serving = serving
        self._pause = _FIRST_PAUSE_SECONDS
        self._again_at = 0.0
        self._began = time.monotonic()
        self.process: subprocess.Popen[bytes] | None = start()

    def restart_if_ended(self, log: DecisionLog, number: int) -> int | None:
        """Start the process again if it has ended; return its status if that would not help."""
        now = time.monotonic()
        if self.process is None:
            if now >= self._again_at:
                self._began, self.process = now, self._start()
            return None
        status = self.process.poll()
        if status is None or (status == BAD_INPUT and not self._serving.exists()):
            return status
        self._pause = (
            _FIRST_PAUSE_SECONDS if now - self._began > _STABLE_SECONDS else min(2 * self._pause, _MAX_PAUSE_SECONDS)
        )
        log.event("process ended", process=number, status=status, again_in=self._pause)
        self.process, self._again_at = None, now + self._pause
        return None


def run_workers(
    processes: int,
    arguments: Sequence[str],
    http_sockets: Sequence[ListenAddress],
    log: DecisionLog,
    grace: float,
) -> int:
    """Run `processes` processes of `eastgate authorizer` until a signal; return the exit status.

    `arguments` are those of the command. `http_sockets` are the unix sockets from which all processes accept.
    """
    stop = _StopSignal()
    shared = [(address, listen(address, shared=False)) for address in http_sockets]
    inherited = [f"{address}={listening.fileno()}" for address, listening in shared]
    with tempfile.TemporaryDirectory(prefix="eastgate-metrics-") as folder:

        def start(number: int) -> subprocess.Popen[bytes]:
            own = ["--process", str(number), *(word for each in inherited for word in ("--inherit", each))]
            return subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", "eastgate", "authorizer", *arguments, *own],
                env={**os.environ, SHARED_FOLDER: folder},
                pass_fds=[listening.fileno() for _, listening in shared],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

        workers = [_Worker(partial(start, number), Path(folder) / f"serving-{number}") for number in range(processes)]
        status = 0
        try:
            while not stop.asked and status == 0:
                for number, worker in enumerate(workers):
                    status = worker.restart_if_ended(log, number) or status
                time.sleep(_POLL_SECONDS)
        finally:
            running = [worker.process for worker in workers if worker.process is not None]
            _end(running, grace)
            for address, listening in shared:
                listening.close()
                if os.path.exists(address.path):
                    os.unlink(address.path)
    return status


def _end(processes: Sequence[subprocess.Popen[bytes]], grace: float) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    end = time.monotonic() + grace
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
