"""Tests that need a program which is built from source run last, the others alternate, and files stay together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import order

ROOT = Path(__file__).parent.parent


def item(nodeid: str, *markers: str) -> Any:
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: name if name in markers else None)


def arranged(*items: Any) -> list[str]:
    ordered = list(items)
    order.pytest_collection_modifyitems(ordered)
    return [each.nodeid for each in ordered]


def test_what_needs_a_program_that_is_built_runs_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "BUILT", ("b.py",))
    given = item("a.py::server", "apiserver", "real"), item("b.py::1"), item("a.py::quick"), item("c.py::1", "real")
    monkeypatch.setenv("EASTGATE_TESTS_MUST_BUILD", "yes")
    assert arranged(*given) == ["c.py::1", "a.py::quick", "a.py::server", "b.py::1"]
    monkeypatch.setenv("EASTGATE_TESTS_MUST_BUILD", "no")
    assert arranged(*given) == ["a.py::server", "a.py::quick", "b.py::1", "c.py::1"]


def test_real_and_quick_files_take_turns_and_long_ones_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "LONG", ("q3.py",))
    quick = [item(f"q{number}.py::t") for number in range(4)]
    real = [item(f"r{number}.py::t", "slow") for number in range(2)]
    assert arranged(*quick, *real) == [f"{name}.py::t" for name in ("r0", "q3", "q0", "r1", "q1", "q2")]


def test_the_tests_of_a_file_stay_together_unless_they_are_many() -> None:
    nodeids = [*(f"a.py::t[{number}]" for number in range(order.TESTS_PER_BATCH + 1)), "b.py::t", "a.py::real"]
    units = order.units_of(nodeids)
    assert [len([each for each in units if units[each] == unit]) for unit in dict.fromkeys(units.values())] == [
        order.TESTS_PER_BATCH,
        1,
        1,
        1,
    ]


def test_every_file_that_is_listed_is_there() -> None:
    assert [path for path in (*order.BUILT, *order.LONG) if not (ROOT / path).exists()] == []


@pytest.mark.real
def test_workers_run_every_test_once_and_begin_in_this_order(tmp_path: Path) -> None:
    text = """
import pathlib, pytest
@pytest.mark.parametrize("number", range(150))
def test_quick(number): note("quick")
@pytest.mark.apiserver
def test_last(): note("last")
@pytest.mark.real
def test_real(): note("real")
def note(kind):
    with pathlib.Path(__file__).with_name("notes").open("a") as notes:
        notes.write(f"{kind}\\n")
"""
    (tmp_path / "test_one.py").write_text(text)
    (tmp_path / "test_two.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    real\n    apiserver\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.order", "-p", "no:cacheprovider", "-n", "2", str(tmp_path)]
    environment = {**os.environ, "EASTGATE_TESTS_MUST_BUILD": "yes"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert "304 passed" in done.stdout, done.stdout + done.stderr
    notes = (tmp_path / "notes").read_text().split()
    assert notes.index("last") > len(notes) - order.TESTS_PER_BATCH - 5  # the other worker finishes its batch first
