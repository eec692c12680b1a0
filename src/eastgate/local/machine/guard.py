"""Controls the reaper: starts it first, tells it what to clean up, dismisses it last."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from eastgate.local.machine import procfs
from eastgate.local.machine.rundir import RunDir

_REAPER = Path(__file__).with_name("reaper.py")
_PATIENCE = 2.0


class Guard:
    """A reaper that waits beside this process. Use it as a context manager, around everything that starts processes."""

    def __init__(self, rundir: RunDir) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", str(_REAPER), str(os.getpid()), str(rundir.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            bufsize=0,
            start_new_session=True,
            pass_fds=(rundir.lock,),
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the reaper still waits. Without it Envoy dies with the mesh too, but the folder stays."""
        return self._process.poll() is None

    def watch(self, pid: int) -> None:
        """Have this process killed if the mesh is."""
        start = procfs.start_time(pid)
        if start is not None:
            self._send(f"watch {pid} {start}")

    def forget(self, pid: int) -> None:
        self._send(f"forget {pid}")

    def done(self) -> None:
        """Dismiss the reaper: the mesh has stopped everything itself."""
        self._send("done")
        stdin = self._process.stdin
        if stdin is not None:
            with contextlib.suppress(OSError):
                stdin.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, line: str) -> None:
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            return
        with contextlib.suppress(OSError):  # somebody killed the reaper
            stdin.write(line.encode() + b"\n")
            stdin.flush()

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None:
        self.done()
