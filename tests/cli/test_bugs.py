"""An unexpected failure is reported as a bug, and never looks like a verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import click
import pytest
from click.testing import CliRunner

from eastgate.authority.reading import Manifests
from eastgate.cli import main

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {serviceAccountName: web}\n"
TABLE = """\
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {name: table}
spec: {manifests: [m.yaml], cases: [{name: a, from: sa:shop/web, to: pod:shop/web, expect: allow}]}
"""
QUESTION = ["--from", "sa:shop/web", "--to", "pod:shop/web"]
READING = {
    "authorizer": ["-f", "m.yaml", "--grpc", "127.0.0.1:0"],
    "check": ["-f", "m.yaml", *QUESTION],
    "convert": ["-f", "m.yaml", "--to", "istio"],
    "describe": ["pod", "-f", "m.yaml"],
    "diff": ["m.yaml", "m.yaml"],
    "explain": ["-f", "m.yaml", *QUESTION],
    "get": ["pods", "-f", "m.yaml"],
    "graph": ["-f", "m.yaml"],
    "lint": ["-f", "m.yaml"],
    "test": ["table.yaml"],
}
"""The commands that sort manifests, and their arguments."""
OTHERS = {
    "bootstrap": ["--node", "shop/web"],
    "call": QUESTION,
    "completion": ["bash"],
    "controller": [],
    "crds": [],
    "inject": ["-f", "m.yaml"],
    "up": ["-f", "m.yaml"],
    "version": [],
    "why": ["-f", "m.yaml", '{"eastgate":"request"}'],
}
COMMANDS = READING | OTHERS


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.yaml").write_text(POD)
    (tmp_path / "table.yaml").write_text(TABLE)
    monkeypatch.chdir(tmp_path)


def _break(monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException) -> None:
    """Make a command fail as soon as it begins."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    command = main.get_command(click.Context(main), name)
    assert command is not None
    while isinstance(command, click.Group):
        command = next(iter(command.commands.values()))
    monkeypatch.setattr(command, "callback", fail)


def test_every_command_is_here() -> None:
    assert set(COMMANDS) == set(main.list_commands(click.Context(main)))


@pytest.mark.parametrize(
    "error", [TypeError("unhashable"), RecursionError(), EOFError(), OSError(5, "I/O"), KeyError(1)]
)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_bug_is_no_verdict(name: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, name, error)
    done = CliRunner().invoke(main, [name, *COMMANDS[name]])
    assert done.exit_code == 2
    assert f"error: this is a bug in Eastgate: {type(error).__name__}" in done.stderr
    assert "EASTGATE_TRACEBACK=1" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", READING)
def test_a_bug_in_reading_names_the_object(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(*_: object) -> NoReturn:
        raise TypeError("unhashable")

    monkeypatch.setattr(Manifests, "add", add)
    done = CliRunner().invoke(main, [name, *READING[name]])
    assert done.exit_code == 2
    assert "this is a bug in Eastgate: TypeError: unhashable; while reading m.yaml:1: Pod web" in done.stderr


def test_the_traceback_is_shown_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, "check", TypeError("un\x1b[31mhashable"))
    done = CliRunner(env={"EASTGATE_TRACEBACK": "1"}).invoke(main, ["check", *COMMANDS["check"]])
    assert done.exit_code == 2
    assert "Traceback (most recent call last):" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [(KeyboardInterrupt(), 130), (click.Abort(), 130), (BrokenPipeError(), 2), (click.ClickException("no"), 2)],
)
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_that_ends_a_command_early_is_a_verdict(
    name: str, error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _break(monkeypatch, name, error)
    assert CliRunner().invoke(main, [name, *COMMANDS[name]]).exit_code == status


_INJECTED = """
import sys, runpy
from eastgate.authority.reading import Manifests
def add(*_): raise TypeError("unhashable")
Manifests.add = add
sys.argv = ["eastgate", "check", "-f", "m.yaml", "--from", "sa:shop/web", "--to", "pod:shop/web"]
"""


@pytest.mark.real
@pytest.mark.parametrize(
    "entry",
    ["runpy.run_module('eastgate', run_name='__main__')", "from eastgate.cli.plugin import main; main()"],
    ids=["python -m eastgate", "kubectl eastgate"],
)
def test_every_entry_point_ends_so(entry: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INJECTED + entry], check=False, capture_output=True, text=True, env={**os.environ}
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "this is a bug in Eastgate" in done.stderr


@pytest.mark.real
def test_a_reader_who_goes_away_hears_no_verdict() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "eastgate", *("check", "-o", "json", "-f", "m.yaml"), *QUESTION]
    try:
        done = subprocess.run(command, check=False, stdout=write, stderr=subprocess.PIPE)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (2, b"")
