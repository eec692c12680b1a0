"""`make demo` works: every answer of its tours is as expected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("example", ["shop", "agents"])
def test_the_tour_ends_well(example: str) -> None:
    tour = [sys.executable, str(ROOT / "examples" / example / "tour.py")]
    done = subprocess.run(tour, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "answers as expected" in done.stdout


def test_the_demo_shows_every_tour() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    demo = makefile.partition("\ndemo:")[2].partition("\n\n")[0]
    for tour in (ROOT / "examples").glob("*/tour.py"):
        assert str(tour.relative_to(ROOT)) in demo
