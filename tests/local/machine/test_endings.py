"""After any end of a mesh, nothing of it remains."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from eastgate.local.machine.rundir import RunDir, find
from tests.local.machine.envoys import SECRET, alive, files_holding, free_port, within
from tests.patience import PATIENCE

_MESH = Path(__file__).with_name("meshlike.py")


@dataclass(frozen=True)
class Mesh:
    process: subprocess.Popen[bytes]
    reaper: int
    envoys: list[int]
    folder: Path

    def remains(self) -> list[str]:
        pids = {"mesh": self.process.pid, "reaper": self.reaper, **{f"envoy {pid}": pid for pid in self.envoys}}
        self.process.poll()
        return [name for name, pid in pids.items() if alive(pid)] + [str(self.folder)] * self.folder.exists()


@contextmanager
def mesh(manner: str = "careless") -> Iterator[Mesh]:
    ports = [str(free_port()), str(free_port())]
    process = subprocess.Popen(
        [sys.executable, str(_MESH), manner, *ports],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        data = json.loads(process.stdout.readline())
        running = Mesh(process, data["reaper"], data["envoys"], Path(data["folder"]))
        assert within(PATIENCE, lambda: all(_is_envoy(pid) for pid in running.envoys))
        yield running
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def _is_envoy(pid: int) -> bool:
    return Path(f"/proc/{pid}/comm").read_text() == "envoy\n"


def _kill(running: Mesh) -> None:
    running.process.kill()


def _kill_group(running: Mesh) -> None:
    os.killpg(running.process.pid, signal.SIGKILL)


def _terminate(running: Mesh) -> None:
    running.process.terminate()


def _hang_up(running: Mesh) -> None:
    running.process.send_signal(signal.SIGHUP)


def _end_normally(running: Mesh) -> None:
    assert running.process.stdin is not None
    running.process.stdin.close()


@pytest.mark.parametrize(
    ("manner", "end"),
    [
        ("careless", _kill),
        ("careless", _kill_group),
        ("careless", _terminate),
        ("careless", _hang_up),
        ("graceful", _terminate),
        ("graceful", _end_normally),
    ],
)
def test_nothing_remains(manner: str, end: object, runtime: Path) -> None:
    assert callable(end)
    with mesh(manner) as running:
        assert running.remains()
        end(running)
        assert within(PATIENCE, lambda: not running.remains()), running.remains()
        assert running.process.wait() in (0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP)
        assert manner == "careless" or running.process.returncode == 0


def test_envoys_die_with_the_mesh_even_without_a_reaper(runtime: Path) -> None:
    with mesh() as running:
        os.kill(running.reaper, signal.SIGKILL)
        running.process.kill()
        assert within(PATIENCE, lambda: not any(alive(pid) for pid in running.envoys))
        assert running.folder.exists()
        running.process.wait()
    with RunDir.acquire("other"):
        assert not running.folder.exists()  # the next mesh sweeps


def test_a_signal_to_the_process_group_does_not_stop_the_reaper(runtime: Path) -> None:
    with mesh() as running:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(running.reaper, number)
        running.process.kill()
        assert within(PATIENCE, lambda: not running.remains()), running.remains()


def test_the_name_can_be_taken_again_at_once_after_a_kill(runtime: Path) -> None:
    with mesh() as running:
        assert find().path == running.folder
        running.process.kill()
        running.process.wait()
        with RunDir.acquire() as mine:
            assert mine.path == running.folder
            assert within(PATIENCE, lambda: not alive(running.reaper))
            assert mine.path.exists()  # the reaper of the old one did not remove the new one


def test_the_bootstrap_is_in_no_file_and_in_no_argument(runtime: Path) -> None:
    with mesh() as running:
        for pid in running.envoys:
            assert SECRET.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
            assert SECRET.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
            held = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            files = [path for path in held if path.startswith("/") and not path.startswith("/dev/")]
            assert files == ["/memfd:bootstrap (deleted)"]
            assert os.readlink(f"/proc/{pid}/cwd") == "/"
        assert files_holding(SECRET, runtime) == []
