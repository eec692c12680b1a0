"""`make demo` works: the tour of the shop ends with every answer as it should be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_tour_ends_well() -> None:
    tour = [sys.executable, str(ROOT / "examples" / "shop" / "tour.py")]
    done = subprocess.run(tour, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "answers as they should be, of Envoy and of the engine alike" in done.stdout
