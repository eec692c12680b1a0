"""The reaper kills the watched processes, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eastgate.local.machine import procfs, reaper
from tests.local.machine.envoys import alive, within
from tests.patience import PATIENCE


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def reap(folder: Path, lines: bytes) -> None:
    program = [sys.executable, "-I", "-S", reaper.__file__, str(os.getpid()), str(folder)]
    subprocess.run(program, input=lines, timeout=PATIENCE, check=True)


def test_a_watched_process_is_killed_and_the_folder_removed(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    folder = tmp_path / "mesh"
    folder.mkdir()
    (folder / "control.sock").touch()
    reap(folder, f"watch {sleeper.pid} {procfs.start_time(sleeper.pid)}\n".encode())
    assert within(PATIENCE, lambda: not alive(sleeper.pid))
    assert not folder.exists()


@pytest.mark.parametrize(
    "lines",
    [
        "watch {pid} {other}\n",  # another process has the pid now
        "watch {pid} {start}\nforget {pid}\n",
        "watch {pid} {start}\ndone\n",
        "watch {pid} {start}",  # an incomplete line
        "watch {pid}\nwatch\nwatch x y\n\nwatch -1 {start}\n\0\n",
    ],
)
def test_no_other_process_is_killed(lines: str, sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    start = procfs.start_time(sleeper.pid)
    assert start is not None
    reap(tmp_path / "none", lines.format(pid=sleeper.pid, start=start, other=start + 1).encode())
    assert alive(sleeper.pid)


def test_after_done_the_folder_is_left_to_the_mesh(tmp_path: Path) -> None:
    reap(tmp_path, b"done\n")
    assert tmp_path.exists()


def test_a_link_in_the_folder_is_removed_and_not_followed(tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "mesh"
    kept.mkdir()
    folder.mkdir()
    (kept / "file").touch()
    (folder / "link").symlink_to(kept)
    reap(folder, b"")
    assert not folder.exists()
    assert (kept / "file").exists()
