"""`eastgate up` as a process of its own, with its events."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eastgate.local.machine import procfs
from tests.patience import PATIENCE

SHOP = Path(__file__).parents[2] / "examples" / "shop" / "manifests"
EASTGATE = [sys.executable, "-c", "from eastgate.cli import main; main(prog_name='eastgate')"]
Event = dict[str, Any]


class Up:
    """A running mesh, the manifests that it follows, and the folder of its sockets."""

    def __init__(self, process: subprocess.Popen[str], name: str, manifests: Path, folder: Path) -> None:
        self.process = process
        self.name = name
        self.manifests = manifests
        self.folder = folder
        self.lines: list[str] = []
        self.said = ""
        self._waiting: queue.Queue[str] = queue.Queue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._waiting.put(line.rstrip("\n"))

    def end(self) -> str:
        """Wait for its end; return its standard error."""
        self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        if not self.process.stderr.closed:
            with self.process.stdout, self.process.stderr:
                self.said = self.process.stderr.read()
        return self.said

    def line(self, timeout: float = PATIENCE) -> str:
        """Return the next line; without one, fail with all output so far."""
        ends = time.monotonic() + timeout
        while True:
            ended = self.process.poll() is not None and not self._reading.is_alive()
            try:
                line = self._waiting.get(timeout=max(0.01, min(0.5, ends - time.monotonic())))
            except queue.Empty:
                if ended or time.monotonic() >= ends:
                    why = f"it ended: {self.end()}" if ended else f"no line in {timeout:.0f} s"
                    raise AssertionError("\n".join([f"{why}, after:", *self.lines])) from None
            else:
                self.lines.append(line)
                return line

    def settle(self, seconds: float = 1.0) -> None:
        """Read until there is no output for a moment."""
        with suppress(queue.Empty):
            while True:
                self.lines.append(self._waiting.get(timeout=seconds))

    def until(self, event: str, timeout: float = PATIENCE) -> Event:
        """Return the next event of this kind."""
        ends = time.monotonic() + timeout
        while True:
            found: Event = json.loads(self.line(max(0.01, ends - time.monotonic())))
            if found["event"] == event:
                return found

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.manifests / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def processes(self) -> list[int]:
        """The processes of the mesh."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    stat = Path(f"/proc/{entry}/stat").read_text()
                except OSError:
                    continue
                if int(stat.rpartition(")")[2].split()[1]) == self.process.pid:
                    found.append(int(entry))
        return found


def remains(pids: list[int], folder: Path) -> list[str]:
    return [str(pid) for pid in pids if procfs.start_time(pid) is not None] + [str(folder)] * folder.exists()


@contextmanager
def runtime_folder() -> Iterator[Path]:
    """A folder for sockets, with a name that is short enough for them, which child processes use too."""
    folder = Path(tempfile.mkdtemp(prefix="egu-"))
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    try:
        yield folder
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
        shutil.rmtree(folder)


@contextmanager
def up(
    folder: Path,
    *options: str,
    name: str = "test",
    output: str = "json",
    without: tuple[str, ...] = (),
    more: str = "",
    source: Path = SHOP,
    program: Sequence[str] = EASTGATE,
) -> Iterator[Up]:
    """Run the shop; its manifests are copied into `folder`. The next event is the first after `ready`.

    `more` are the manifests of one more file, `more.yaml`; `source` is another folder than the shop's.
    """
    manifests = folder / "manifests"
    shutil.copytree(source, manifests, ignore=shutil.ignore_patterns(*without))
    if more:
        (manifests / "more.yaml").write_text(more)
    with runtime_folder() as runtime:
        process = subprocess.Popen(
            [*program, "up", "-f", "manifests", "--name", name, "-o", output, *options],
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running = Up(process, name, manifests, runtime / "eastgate" / name)
        try:
            if output == "json":
                running.until("ready")
            yield running
        finally:
            if process.poll() is None:
                process.terminate()
            running.end()
