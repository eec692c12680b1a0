"""What a benchmark prints: a table, what was measured, and each target with whether it is met."""

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

__all__ = ["Section", "Target", "machine", "text", "write_json"]

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Target:
    """Something to reach, what was reached, and whether that is enough."""

    wanted: str
    reached: str
    met: bool


@dataclass(slots=True)
class Section:
    """One table. `measured` says in words what its numbers are."""

    title: str
    measured: str
    columns: Sequence[str]
    rows: list[list[str | float]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def text(section: Section) -> str:
    """A section for people."""
    cells = [list(section.columns), *([_cell(value) for value in row] for row in section.rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(section.columns))]
    lines = ["", f"## {section.title}", fill(section.measured, 110), ""]
    lines += ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    lines += section.notes
    lines += [f"{'met   ' if one.met else 'MISSED'}  {one.wanted}: {one.reached}" for one in section.targets]
    return "\n".join(lines)


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def machine() -> str:
    """Where this runs."""
    busy = f", {os.getloadavg()[0]:.1f} of them busy at the start" if hasattr(os, "getloadavg") else ""
    return f"Python {sys.version.split()[0]}, {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs{busy}"


def write_json(sections: Iterable[Section], *, quick: bool) -> Path:
    """The same for machines, in a file of its own."""
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    told = {"at": now.isoformat(), "machine": machine(), "quick": quick, "sections": [asdict(one) for one in sections]}
    path.write_text(json.dumps(told, indent=1), encoding="utf-8")
    return path
