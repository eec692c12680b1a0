"""A Python with the MCP SDK 1.x, which has many clients and cannot be installed beside 2.x."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["python_with_mcp_1"]

_NEEDS = "mcp>=1.28,<2"
_TIMEOUT_SECONDS = 600


def python_with_mcp_1() -> Path:
    """Return a Python with the SDK 1.x, in a virtual environment of the cache. Create it if necessary."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eastgate" / "programs"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache / f"mcp-1-python{version}"
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "environment" / "bin" / "python"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists() or not python.exists():
            _make(folder)
    return python


def _make(folder: Path) -> None:
    environment = folder / "environment"
    shutil.rmtree(environment, ignore_errors=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        for command in ([sys.executable, "-m", "venv", str(environment)], [*pip, _NEEDS]):
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=_TIMEOUT_SECONDS)
    except subprocess.CalledProcessError as error:
        pytest.fail(f"the MCP SDK 1.x cannot be installed here: {error.stderr[-400:]}")
    except subprocess.TimeoutExpired:
        pytest.fail(f"the MCP SDK 1.x cannot be installed here in {_TIMEOUT_SECONDS} seconds")
    (folder / "ready").touch()
