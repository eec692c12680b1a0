"""A small program that cleans up after a killed mesh: `python -I -S reaper.py PARENT FOLDER`.

It runs in a session of its own, so that a kill of the mesh and its process group does not kill it. The mesh writes
lines to its stdin: `watch PID START`, `forget PID` and, at a normal end, `done`. If stdin or the mesh process ends
without a `done`, it kills the watched processes and removes the folder. A pid alone is no proof, so a process is killed
only if it has the reported start time.

It inherits the lock of the folder: no mesh of that name can start before the cleaning is over. It uses the standard
library only.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

_EXIT_TIMEOUT_SECONDS = 1.0


class Watched:
    """The processes of the mesh, by pid, with the time at which each started."""

    def __init__(self) -> None:
        self.processes: dict[int, int] = {}
        self.done = False
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Read lines of the mesh. An incomplete line is kept; a malformed line is ignored."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            match line.split():
                case [b"watch", pid, start] if pid.isdigit() and start.isdigit():
                    self.processes[int(pid)] = int(start)
                case [b"forget", pid] if pid.isdigit():
                    self.processes.pop(int(pid), None)
                case [b"done"]:
                    self.done = True


def main(arguments: list[str]) -> int:
    """Wait for the end of the mesh, and clean up after it, unless it has done so itself."""
    parent, folder = int(arguments[0]), arguments[1]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with the mesh
    watched = Watched()
    _listen(watched, parent)
    if not watched.done:
        _kill(watched.processes)
        _remove(folder)
    return 0


def _listen(watched: Watched, parent: int) -> None:
    waiting = select.poll()
    waiting.register(0, select.POLLIN | select.POLLHUP)
    # A child of the mesh may keep the pipe open, as it inherits its end: so the process is watched as well.
    mesh = _pidfd(parent)
    if mesh is not None:
        waiting.register(mesh, select.POLLIN)
    alive = os.getppid() == parent
    while not watched.done:
        ready = {descriptor for descriptor, _ in waiting.poll(None if alive else 0)}
        data = os.read(0, 65536) if 0 in ready else None
        if data:
            watched.feed(data)
        elif data == b"" or not alive or ready:
            return


def _kill(processes: dict[int, int]) -> None:
    dying = []
    for pid, start in processes.items():
        descriptor = _pidfd(pid)  # while it is held, the pid cannot mean another process
        if descriptor is None or _start_time(pid) != start:
            continue
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        except OSError:  # it has just ended
            continue
        dying.append(descriptor)
    deadline = time.monotonic() + _EXIT_TIMEOUT_SECONDS
    for descriptor in dying:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        ended.poll(max(0.0, deadline - time.monotonic()) * 1000)


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _start_time(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return None


def _remove(folder: str) -> None:
    import shutil  # half of the time that this program would need to start

    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
