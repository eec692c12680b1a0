"""A small program that cleans up after a mesh that was killed: `python -I -S reaper.py PARENT FOLDER`.

It runs in a session of its own, so that what kills the mesh and its process group does not kill it.
The mesh tells it on stdin, line by line, `watch PID START`, `forget PID` and, at a normal end, `done`.
When stdin ends, or the mesh process does, without a `done`, it kills what it was told to watch and removes the folder.
A pid alone is no proof, so a process is killed only if it started when the mesh said it did.

It inherits the lock of the folder: nobody can start a mesh of that name before the cleaning is over.
It uses the standard library only.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

_PATIENCE = 1.0


class Watched:
    """The processes of the mesh, by pid, with the time at which each started."""

    def __init__(self) -> None:
        self.processes: dict[int, int] = {}
        self.done = False
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Read what the mesh wrote. Half a line is kept; a malformed line is ignored."""
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
    """Wait for the end of the mesh, and clean up after it unless it has done so itself."""
    parent, folder = int(arguments[0]), arguments[1]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it leaves when the mesh does
    watched = Watched()
    _listen(watched, parent)
    if not watched.done:
        _kill(watched.processes)
        _remove(folder)
    return 0


def _listen(watched: Watched, parent: int) -> None:
    waiting = select.poll()
    waiting.register(0, select.POLLIN | select.POLLHUP)
    # A child of the mesh that inherited its end of the pipe would keep it open: so the process is watched as well.
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
        descriptor = _pidfd(pid)  # held while the start is compared, it cannot come to mean another process
        if descriptor is None or _start_time(pid) != start:
            continue
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        except OSError:  # it has just ended
            continue
        dying.append(descriptor)
    deadline = time.monotonic() + _PATIENCE
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
