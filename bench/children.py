"""Work in a process of its own: its memory is then its own, and it can be stopped."""

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
    """What `python -m module arguments` prints, as JSON; None where it takes more CPU time than that."""
    done = limited(module, *arguments, seconds=seconds)
    if done is None:
        return None
    if done.returncode:
        raise AssertionError(f"{' '.join(arguments)}: {done.stderr}")
    return cast("Child", json.loads(done.stdout.splitlines()[-1]))


def limited(module: str, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str] | None:
    """Run `python -m module arguments`; None where it takes more CPU time than that. A busy machine does not count."""
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
    """What this process holds of the machine's memory now; where the system does not tell, the most that it held."""
    if not _STATM.exists():
        return peak_bytes()
    return int(_STATM.read_text(encoding="utf-8").split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """The most that this process has held. What `getrusage` tells is handed down from the parent on Linux."""
    if _STATUS.exists():
        held = next(line for line in _STATUS.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM:"))
        return int(held.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
