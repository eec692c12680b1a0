"""A terminal that runs the commands of one page one after the other, as a reader would.

It starts in an empty folder. If the page uses `examples/`, the folder has a copy of them. If a folder beside the
page has the page's name, the terminal folder has a copy of its files. `eastgate up` continues to run in the background,
until the page ends or starts another one. The mesh has the addresses of the page: pages show a mesh at 127.64.0.0/16.
If that network is in use, the terminal translates addresses in commands and outputs.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.docs.blocks import ROOT

__all__ = ["Terminal", "terminal"]

_TIMEOUT_SECONDS = 120.0
_QUIET_SECONDS = 3.0
_UP = re.compile(r"(?:\w+=\S+ )*eastgate up\b")
_READY = re.compile(r"^ready\b", re.MULTILINE)
_NETWORK = re.compile(r"\b127\.\d+\.0\.(?=\d)")
_WRITTEN = "127.64.0."
_NOT_OURS = re.compile(r"(?i).*_proxy|columns|lines|no_color|force_color|ci|github_.*|eastgate.*|pytest.*|cov_.*")


class Terminal:
    """A terminal that runs commands. `commands` has the command `eastgate`, of the sources under test."""

    def __init__(self, folder: Path, runtime: Path, commands: Path) -> None:
        self._folder = self._here = folder
        self._state = runtime / "folder"
        self._heard = runtime / "up"
        self._environment = {name: value for name, value in os.environ.items() if not _NOT_OURS.fullmatch(name)}
        self._environment |= {
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "PATH": f"{commands}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "TERM": "dumb",
            "XDG_RUNTIME_DIR": str(runtime),
        }
        self._status = 0
        self._mesh: subprocess.Popen[bytes] | None = None
        self._network = _WRITTEN
        self._since = 0

    def run(self, command: str) -> str:
        """Run a command, and return its output and errors. For `eastgate up`, return the output until it is ready."""
        if _UP.match(command):
            return self._up(command)
        self._since = len(self._printed())
        script = f"(exit {self._status})\n{self._here_and_now(command)}\n"
        script += f'__status=$?; pwd > "{self._state}"; exit $__status\n'
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=self._here,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        self._status = ran.returncode
        with contextlib.suppress(OSError):
            self._here = Path(self._state.read_text().rstrip("\n"))
        return self._as_written(ran.stdout.decode())

    def output_when(self, is_expected: Callable[[str], bool]) -> str:
        """Wait for expected output of the mesh since the last command, and return the output at that time."""
        assert self._mesh is not None, "no `eastgate up` runs on this page"
        ends = time.monotonic() + _TIMEOUT_SECONDS
        while not is_expected(found := self._printed()[self._since :]) and time.monotonic() < ends:
            assert self._mesh.poll() is None, f"the mesh has ended:\n{self._printed()}"
            time.sleep(0.1)
        return found

    def settled_output(self) -> str:
        """Return the output of the mesh since the last command, once the mesh prints nothing more for some seconds."""
        length, ends = -1, time.monotonic() + _TIMEOUT_SECONDS
        while length != (length := len(self._printed())) or (length == self._since and time.monotonic() < ends):
            time.sleep(_QUIET_SECONDS)
        return self._printed()[self._since :]

    def close(self) -> None:
        """Stop the mesh, if it still runs."""
        if self._mesh is not None and self._mesh.poll() is None:
            self._mesh.send_signal(signal.SIGINT)
            try:
                self._mesh.wait(_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self._mesh.kill()
                self._mesh.wait()

    def _up(self, command: str) -> str:
        self.close()
        self._since = 0
        with self._heard.open("wb") as output:
            self._mesh = subprocess.Popen(
                ["bash", "-c", f"exec {self._here_and_now(command)}"],
                cwd=self._here,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        printed = self.output_when(lambda text: _READY.search(text) is not None)
        network = _NETWORK.search(self._heard.read_text())
        self._network = network[0] if network is not None else _WRITTEN
        ready = _READY.search(printed)
        assert ready is not None, f"the mesh does not start:\n{printed}"
        end = printed.find("\n", ready.start())
        return self._as_written(printed[:end])

    def _printed(self) -> str:
        return self._as_written(self._heard.read_text()) if self._heard.exists() else ""

    def _as_written(self, text: str) -> str:
        return text.replace(self._network, _WRITTEN)

    def _here_and_now(self, command: str) -> str:
        return command.replace(_WRITTEN, self._network)


@contextlib.contextmanager
def terminal(folder: Path, *, examples: bool, files: Path | None = None) -> Iterator[Terminal]:
    """Open a terminal in a folder with a copy of the examples or of the page's files, if given."""
    if files is not None and files.is_dir():
        shutil.copytree(files, folder, dirs_exist_ok=True)
    if examples:
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    runtime = Path(tempfile.mkdtemp(prefix="egd-"))  # the path of a unix socket must be short
    try:
        commands = runtime / "bin"
        commands.mkdir()
        script = commands / "eastgate"
        run = "from eastgate.cli import main; main(prog_name='eastgate')"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{run}" "$@"\n')
        script.chmod(0o755)
        opened = Terminal(folder, runtime, commands)
        try:
            yield opened
        finally:
            opened.close()
    finally:
        shutil.rmtree(runtime)
