"""A small program that becomes Envoy: `python -I -S launch.py PARENT ENVOY ARGUMENT...`, the bootstrap on stdin.

The mesh cannot do four things from outside, so this program runs between it and Envoy. Envoy dies with the mesh, for
any reason. The bootstrap, which may hold keys, is in memory only: no file, no argument that other users can read. A
crash leaves no core file with those keys. And Envoy may open as many files as the user may: without a free one it ends.

It uses only a small part of the standard library: there is one start per workload.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_ORPHAN = 3
_NO_ENVOY = 127


def main(arguments: list[str]) -> int:
    """Become Envoy. Return an exit code only if that is impossible."""
    parent, envoy, *flags = arguments
    die_with_parent()
    if os.getppid() != int(parent):  # it died before the kernel started to watch it
        return _ORPHAN
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    bootstrap = memory_file(sys.stdin.buffer.read())
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    # Envoy refuses paths under /proc and /dev except this one. Without a known ending the text is read as JSON.
    command = ["envoy", "-c", f"/dev/fd/{bootstrap}", *flags]
    try:
        os.execv(envoy, command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        print(f"cannot run {envoy}: {error.strerror}", file=sys.stderr)
        return _NO_ENVOY


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends. This also holds for the program that it becomes."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def memory_file(content: bytes) -> int:
    """Return a descriptor of a file in memory, which the next program inherits."""
    descriptor = os.memfd_create("bootstrap", 0)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
