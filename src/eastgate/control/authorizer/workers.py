"""Several processes of one authorizer: they share ports, and one that ends by itself is started again.

Ports are shared by the kernel (SO_REUSEPORT). Of a unix socket for HTTP there is one, which all of them accept from; of
one for gRPC, each process has its own, which ends in its number.
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
"""The exit status of a process that could not start: starting it again would not help. A process that has served is
started again, whatever its status.
"""

_LOOK: Final = 0.1  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0  # seconds before a process is started again
_SETTLED: Final = 30.0  # seconds after which a process counts as well started


class _Stop:
    """Remembers that somebody asked for the end."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


def note_serving(number: int) -> None:
    """Tell the first process that this one has begun to serve."""
    (Path(os.environ[SHARED_FOLDER]) / f"serving-{number}").touch()


class _Worker:
    """A worker and its current process. `serving` is a file that exists once the process has served."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], serving: Path) -> None:
        self._start = start
        self._serving = serving
        self._pause = _FIRST_PAUSE
        self._again_at = 0.0
        self._began = time.monotonic()
        self.process: subprocess.Popen[bytes] | None = start()

    def look(self, log: DecisionLog, number: int) -> int | None:
        """Start the process again where it has ended; return its status where that would not help."""
        now = time.monotonic()
        if self.process is None:
            if now >= self._again_at:
                self._began, self.process = now, self._start()
            return None
        status = self.process.poll()
        if status is None or (status == BAD_INPUT and not self._serving.exists()):
            return status
        self._pause = _FIRST_PAUSE if now - self._began > _SETTLED else min(2 * self._pause, _LONGEST_PAUSE)
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
    """Run so many processes of `eastgate authorizer` until a signal; return the exit status.

    `arguments` are those of the command; `http_sockets` the unix sockets that all of them accept from.
    """
    stop = _Stop()
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
                    status = worker.look(log, number) or status
                time.sleep(_LOOK)
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
