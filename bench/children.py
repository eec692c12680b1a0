"""Work in a child process, whose memory can be measured and which can be stopped."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

__all__ = ["Child", "limited", "peak_bytes", "resident_bytes", "run_child"]

Child = dict[str, float]

_ROOT = Path(__file__).parent.parent
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")
_STOPPED = (-signal.SIGXCPU, -signal.SIGKILL)


def run_child(module: str, *arguments: str, seconds: float) -> Child | None:
    """Return the JSON that `python -m module arguments` prints, or None if it needs more CPU seconds."""
    done = limited(module, *arguments, seconds=seconds)
    if done is None:
        return None
    if done.returncode:
        raise AssertionError(f"{' '.join(arguments)}: {done.stderr}")
    return cast("Child", json.loads(done.stdout.splitlines()[-1]))


def limited(module: str, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str] | None:
    """Run `python -m module arguments`. Return None if it needs more CPU seconds. Waiting time does not count."""
    limit = round(seconds)
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)),
    )
    return None if done.returncode in _STOPPED else done


def resident_bytes() -> int:
    """Return the resident memory of this process, or its peak on a system without `/proc`."""
    if not _STATM.exists():
        return peak_bytes()
    return int(_STATM.read_text(encoding="utf-8").split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """Return the peak memory of this process. On Linux, `getrusage` would include the peak of the parent."""
    if _STATUS.exists():
        held = next(line for line in _STATUS.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM:"))
        return int(held.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
