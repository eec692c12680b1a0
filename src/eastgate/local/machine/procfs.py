"""Reads from /proc: the start time of a process, its memory and time, and listening ports."""

from __future__ import annotations

import os
from ipaddress import IPv4Address

from eastgate.basics.records import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")


_PAGE = os.sysconf("SC_PAGE_SIZE")


_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Usage:
    """Resident memory in bytes and processor time in seconds."""

    rss: int
    cpu_seconds: float


def start_time(pid: int) -> int | None:
    """Return the start time of a process, in clock ticks since boot, or None.

    It distinguishes two processes with the same pid.
    """
    fields = _stat(pid)
    return None if fields is None or fields[0] in ("Z", "X") else int(fields[19])


def usage(pid: int) -> Usage | None:
    """Return the resources that a process uses, or None after its end."""
    fields = _stat(pid)
    if fields is None:
        return None
    return Usage(rss=int(fields[21]) * _PAGE, cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS)


def listening() -> set[tuple[IPv4Address, int]]:
    """Return the listening IPv4 addresses and ports. Raises OSError if /proc cannot be read."""
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
