"""The CPU time of short commands as whole processes, beside an interpreter that does nothing."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from bench.report import Section, Target

__all__ = ["run"]

_ROOT = Path(__file__).parent.parent
_SHOP = "examples/shop/manifests"
_MAX_CHECK_SECONDS = 0.15

_NOTHING = "python -c pass"
_ALLOWED = ("-f", _SHOP, "--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080")
_COMMANDS = {
    "check": ("check", *_ALLOWED),
    "explain": ("explain", *_ALLOWED),
    "get": ("get", "policies", "-f", _SHOP),
    "describe": ("describe", "pod", "cart", "-n", "shop", "-f", _SHOP),
    "lint": ("lint", _SHOP),
    "test": ("test", "examples/shop"),
    "version": ("version",),
    "--help": ("--help",),
}


def run(*, quick: bool) -> Section:
    """Measure the commands in turns, so that a disturbance affects all of them."""
    words: dict[str, tuple[str, ...]] = {_NOTHING: ("-c", "pass")}
    words |= {f"eastgate {name}": ("-m", "eastgate", *arguments) for name, arguments in _COMMANDS.items()}
    for arguments in words.values():  # write the bytecode, and fill the cache of the system
        _seconds(arguments)
    best = dict.fromkeys(words, float("inf"))
    for _ in range(5 if quick else 15):
        for name, arguments in words.items():
            best[name] = min(best[name], _seconds(arguments))
    reached, limit = best["eastgate check"], _MAX_CHECK_SECONDS
    return Section(
        "Start",
        "CPU seconds, user and system, of whole commands on examples/shop: the minimum of rounds in turns. times: "
        "the ratio to an interpreter that does nothing.",
        ("command", "CPU s", "times"),
        [[name, seconds, seconds / best[_NOTHING]] for name, seconds in best.items()],
        [Target(f"`eastgate check` in less than {limit} s of CPU", f"{reached:.3f} s", met=reached < limit)],
        points=[{"command": name, "cpu_seconds": seconds} for name, seconds in best.items()],
    )


def _seconds(arguments: tuple[str, ...]) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=_ROOT, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
