"""Tells whether a file is being written: reading it then gives half of it, or nothing."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import time

SETTLING = 0.5  # seconds
_F_SETSIG = getattr(fcntl, "F_SETSIG", 10)  # Python has it since 3.13


def is_being_written(path: str) -> bool:
    """Return whether a file is open for writing; where the kernel cannot tell, whether it was changed just now."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return False
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False  # who reads it finds the same
    try:
        is_open = _is_open_for_writing(opened)
    finally:
        os.close(opened)
    return is_open if is_open is not None else abs(time.time() - status.st_ctime) < SETTLING


def _is_open_for_writing(opened: int) -> bool | None:
    """Ask for a read lease, which the kernel grants only without writers. None if it grants none for this file.

    A process that opens the file for writing meanwhile waits until the lease is returned, which is at once; the signal
    for that is one that is ignored.
    """
    try:
        fcntl.fcntl(opened, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
