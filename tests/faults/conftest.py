"""Each test has its own runtime folder, and may be a coroutine."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_TIMEOUT_SECONDS = 300.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine, with a time limit."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), _TIMEOUT_SECONDS))
    return True


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the runtime folder of meshes, with a path that is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="eg-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)
