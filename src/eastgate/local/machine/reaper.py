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
from ipaddress import IPv4Address

from eastgate.basics.records import dataclass

# Reads from /proc: when a process started, how much memory and time it has used, and which ports are listened on.


_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Usage:
    """Resident memory in bytes and processor time in seconds."""

    rss: int
    cpu_seconds: float


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None when it has ended. It tells apart two uses of one
    pid.
    """
    fields = _stat(pid)
    return None if fields is None or fields[0] in ("Z", "X") else int(fields[19])


def usage(pid: int) -> Usage | None:
    """Return what a process uses; None when it has ended."""
    fields = _stat(pid)
    if fields is None:
        return None
    return Usage(rss=int(fields[21]) * _PAGE, cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS)


def listening() -> set[tuple[IPv4Address, int]]:
    """Return the IPv4 addresses and ports that are listened on. Raises OSError where /proc cannot be read."""
    sockets = set()
    with open("/proc/net/tcp", encoding="ascii") as table:
        for fields in (line.split() for line in list(table)[1:]):
            if fields[3] == _LISTEN:
                address, _, port = fields[1].partition(":")
                sockets.add((IPv4Address(bytes.fromhex(address)[::-1]), int(port, 16)))
    return sockets


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on: the name before it may hold blanks and parentheses."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


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
