"""A terminal in which the commands of one page are run, one after the other, as a reader would.

It begins in an empty folder; a page that speaks of `examples/` finds a copy of them there, and a page with a folder of
its own name beside it what is in that. `eastgate up` goes on behind
the commands that follow, until the page ends or starts another one. Its addresses are the page's: documents have a mesh
at 127.64.0.0/16, and where that network is taken, commands get the mesh's own addresses and outputs those of the page.
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

_LIMIT = 120.0  # seconds; only what never comes waits for so long
_QUIET = 3.0
_UP = re.compile(r"(?:\w+=\S+ )*eastgate up\b")
_READY = re.compile(r"^ready\b", re.MULTILINE)
_NETWORK = re.compile(r"\b127\.\d+\.0\.(?=\d)")
_WRITTEN = "127.64.0."
_NOT_OURS = re.compile(r"(?i).*_proxy|columns|lines|no_color|force_color|ci|github_.*|eastgate.*|pytest.*|cov_.*")


class Terminal:
    """Where commands are run. `bin` has the command `eastgate`, of the sources under test."""

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
        """What a command prints, on both of its outputs. One that goes on: what it prints until it is ready."""
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
            timeout=_LIMIT,
            check=False,
        )
        self._status = ran.returncode
        with contextlib.suppress(OSError):
            self._here = Path(self._state.read_text().rstrip("\n"))
        return self._as_written(ran.stdout.decode())

    def heard(self, is_it: Callable[[str], bool]) -> str:
        """What the mesh has printed since the last command began: once this is so, or nothing more comes."""
        assert self._mesh is not None, "no `eastgate up` runs on this page"
        ends = time.monotonic() + _LIMIT
        while not is_it(found := self._printed()[self._since :]) and time.monotonic() < ends:
            assert self._mesh.poll() is None, f"the mesh has ended:\n{self._printed()}"
            time.sleep(0.1)
        return found

    def settled(self) -> str:
        """The same, once nothing more has come for a while; for whoever does not know what to wait for."""
        length, ends = -1, time.monotonic() + _LIMIT
        while length != (length := len(self._printed())) or (length == self._since and time.monotonic() < ends):
            time.sleep(_QUIET)
        return self._printed()[self._since :]

    def close(self) -> None:
        """Stop what still runs."""
        if self._mesh is not None and self._mesh.poll() is None:
            self._mesh.send_signal(signal.SIGINT)
            try:
                self._mesh.wait(_LIMIT)
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
        printed = self.heard(lambda text: _READY.search(text) is not None)
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
    """Open a terminal in a folder, which is empty, or has the examples or the files of a page in it."""
    if files is not None and files.is_dir():
        shutil.copytree(files, folder, dirs_exist_ok=True)
    if examples:
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    runtime = Path(tempfile.mkdtemp(prefix="egd-"))  # sockets have short names
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
