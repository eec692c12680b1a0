"""Processes of a test. Each has a log, and is stopped by its id."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

START_SECONDS = 120
_STOP_SECONDS = 15


def free_port() -> int:
    """Return a loopback port on which no process listens now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


class Processes:
    """Processes with their logs in one folder. At the end they are stopped, the last started first.

    With `is_bound`, a process ends with the thread that started it, even if that is killed, on systems with `setpriv`.
    """

    is_bound = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pids(self) -> list[int]:
        """Return the ids of the running processes."""
        return [process.pid for process in self._running]

    def start(self) -> None:
        """Start the processes, and wait until they are ready."""

    def run(
        self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a program in the background."""
        bound = ["setpriv", "--pdeathsig", "KILL"] if self.is_bound and shutil.which("setpriv") else []
        with (self.folder / f"{Path(command[0]).name}.log").open("ab") as log:
            variables = {**os.environ, **(environment or {})}
            process = subprocess.Popen([*bound, *command], stdout=log, stderr=log, env=variables)
        self._running.append(process)
        return process

    def end(self, process: subprocess.Popen[bytes], *, is_asked: bool = True) -> None:
        """End a program with SIGTERM (`is_asked`) or SIGKILL, and wait until it has ended."""
        self._running.remove(process)
        if is_asked:
            process.terminate()
        else:
            process.kill()
        try:
            process.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        """Wait until `is_ready()`. Fail with the logs if a program ends first, or after too long."""
        end = time.monotonic() + START_SECONDS
        while not is_ready():
            is_dead = any(process.poll() is not None for process in self._running)
            assert not is_dead, f"a program ended:\n{self.logs()}"
            assert time.monotonic() < end, f"not ready within {START_SECONDS} seconds:\n{self.logs()}"
            time.sleep(0.1)

    def wait_for_end(self) -> None:
        """Wait until one of the programs has ended by itself, and remove it from the running ones."""
        end = time.monotonic() + START_SECONDS
        while not (ended := [process for process in self._running if process.poll() is not None]):
            assert time.monotonic() < end, f"no program ended:\n{self.logs()}"
            time.sleep(0.1)
        self._running = [process for process in self._running if process not in ended]

    def logs(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(f"{path.name}: {path.read_text()[-2000:]}" for path in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        """Stop all processes."""
        while self._running:
            self.end(self._running[-1])
