"""What the kernel tells: when a process started, how much memory and time it has used, and where somebody listens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import IPv4Address

__all__ = ["Usage", "listening", "start_time", "usage"]

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Usage:
    """Resident memory in bytes and processor time in seconds."""

    rss: int
    cpu_seconds: float


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it is gone. It tells apart two uses of one pid."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in ("Z", "X") else int(fields[19])


def usage(pid: int) -> Usage | None:
    """What a process uses; None when it is gone."""
    fields = _stat(pid)
    if fields is None:
        return None
    return Usage(rss=int(fields[21]) * _PAGE, cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS)


def listening() -> set[tuple[IPv4Address, int]]:
    """The IPv4 addresses and ports where somebody listens now. Raises OSError where the kernel does not tell."""
    found = set()
    with open("/proc/net/tcp", encoding="ascii") as table:
        for fields in (line.split() for line in list(table)[1:]):
            if fields[3] == _LISTEN:
                address, _, port = fields[1].partition(":")
                found.add((IPv4Address(bytes.fromhex(address)[::-1]), int(port, 16)))
    return found


def _stat(pid: int) -> list[str] | None:
    """The fields from the state on: the name before it may hold blanks and parentheses."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None
