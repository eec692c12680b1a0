"""The output of a benchmark: a table, a description of the measurements, and each target with its result."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill

__all__ = ["LATEST", "Section", "Target", "duration", "machine", "text", "write_json"]

LATEST = Path(__file__).parent / "results" / "latest.json"


@dataclass(frozen=True, slots=True)
class Target:
    """A goal, the reached value, and whether it meets the goal."""

    wanted: str
    reached: str
    met: bool


@dataclass(slots=True)
class Section:
    """One table. `measured` describes its numbers in words; `points` are the exact numbers for the JSON."""

    title: str
    measured: str
    columns: Sequence[str]
    rows: list[list[str | float]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    points: list[dict[str, object]] = field(default_factory=list)


def text(section: Section) -> str:
    """Return a section as text."""
    cells = [list(section.columns), *([_cell(value) for value in row] for row in section.rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(section.columns))]
    lines = ["", f"## {section.title}", fill(section.measured, 110), ""]
    lines += ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    lines += section.notes
    lines += [f"{'met   ' if one.met else 'MISSED'}  {one.wanted}: {one.reached}" for one in section.targets]
    return "\n".join(lines)


def duration(ns: float) -> str:
    """Return nanoseconds as text in a suitable unit."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns:.0f} ns"


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def machine() -> str:
    """Return a description of the machine."""
    busy = f", {os.getloadavg()[0]:.1f} of them busy at the start" if hasattr(os, "getloadavg") else ""
    return f"Python {sys.version.split()[0]}, {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs{busy}"


def write_json(sections: Iterable[Section], path: Path, *, where: str, quick: bool) -> None:
    """Write the sections as JSON. `where` is the result of `machine` at the start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "at": datetime.now(UTC).isoformat(),
        "machine": where,
        "quick": quick,
        "sections": [asdict(one) for one in sections],
    }
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
