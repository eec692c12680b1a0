"""Whether files are at rest: who reads one while it is being written gets half of it, or nothing."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import time

__all__ = ["SETTLING", "is_being_written"]

SETTLING = 0.5  # seconds
_F_SETSIG = getattr(fcntl, "F_SETSIG", 10)  # Python has it since 3.13


def is_being_written(path: str) -> bool:
    """Whether somebody has a file open for writing; where the kernel does not say, whether it was changed just now."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return False
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False  # who reads it finds the same
    try:
        written = _is_open_for_writing(opened)
    finally:
        os.close(opened)
    return written if written is not None else abs(time.time() - status.st_ctime) < SETTLING


def _is_open_for_writing(opened: int) -> bool | None:
    """Ask for a read lease, which the kernel gives where nobody writes. None where it gives none for this file.

    Who opens the file for writing meanwhile waits until the lease is given back, which is at once; the signal that
    tells of it is one that is ignored.
    """
    try:
        fcntl.fcntl(opened, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
