"""The chart of the cost of a decision by number of policies, for the README. The SVG is written without a library."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bench.report import duration

__all__ = ["draw", "points_of", "svg"]

Line = list[tuple[float, float]]

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 46, 48
_COLOURS = {"eastgate": "#0b6e4f", "cedar": "#c8553d", "casbin": "#7b5ea7", "rego": "#2f6db5", "vakt": "#b8860b"}
_NAMES = {"eastgate": "Eastgate", "cedar": "Cedar", "rego": "Rego (C++)"}
_WORLD = "network"
_CASES = ("verdict", "own", "all")
_LABEL_GAP_PX = 15.0


def draw(results: Path, to: Path) -> None:
    """Read the JSON of a run, and write the chart."""
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(svg(points_of(json.loads(results.read_text(encoding="utf-8")))), encoding="utf-8")


def points_of(saved: Mapping[str, Any]) -> dict[tuple[str, str], Line]:
    """Return the lines of the chart: numbers of policies and nanoseconds, by engine and case."""
    lines: dict[tuple[str, str], Line] = {}
    for section in saved["sections"]:
        for point in section["points"]:
            if point.get("world") == _WORLD and point.get("ns") and point["case"] in _CASES:
                lines.setdefault((point["engine"], point["case"]), []).append((point["policies"], point["ns"]))
    return lines


def svg(lines: Mapping[tuple[str, str], Line]) -> str:
    """Return a log-log chart: whole lines with only the policies that apply, dashed lines with all policies."""
    if not lines:
        raise ValueError("no decisions of the world 'network' in these results: nothing to draw")
    scale = _Scale([point for line in lines.values() for point in line])
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            'font-family="system-ui, sans-serif" font-size="12" fill="#333">',
            "<title>Time per decision against the number of policies</title>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
            f'<text x="{_LEFT}" y="18" font-size="14" font-weight="600">Time per decision by number of policies</text>',
            f'<text x="{_LEFT}" y="35" fill="#666">whole line: given only the policies that apply; '
            "dashed: given all of them</text>",
            *scale.grid(),
            *(_line(key, line, scale) for key, line in lines.items()),
            *_labels(lines, scale),
            "</svg>",
            "",
        ]
    )


class _Scale:
    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        self._x = _decades([x for x, _ in points])
        self._y = _decades([y for _, y in points])

    def x(self, value: float) -> float:
        low, high = self._x
        return _LEFT + (math.log10(value) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self._y
        return _HEIGHT - _BOTTOM - (math.log10(value) - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def grid(self) -> Iterator[str]:
        """Yield a line for each power of ten."""
        for power in range(self._y[0], self._y[1] + 1):
            y = self.y(10.0**power)
            yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>'
            yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{duration(10.0**power)}</text>'
        for power in range(self._x[0], self._x[1] + 1):
            x = self.x(10.0**power)
            yield f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{10**power:,}</text>'
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        yield f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle" fill="#666">policies</text>'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _line(key: tuple[str, str], line: Line, scale: _Scale) -> str:
    engine, case = key
    at = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in line)
    dashed = ' stroke-dasharray="5 4"' if case == "all" else ""
    width = 3 if engine == "eastgate" else 1.6
    dots = "".join(f'<circle cx="{scale.x(x):.1f}" cy="{scale.y(y):.1f}" r="2.5"/>' for x, y in line)
    colour = _COLOURS.get(engine, "#555")
    drawn = f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>'
    return f'{drawn}<g fill="{colour}">{dots}</g>'


def _labels(lines: Mapping[tuple[str, str], Line], scale: _Scale) -> Iterator[str]:
    """Yield a label at the end of each line. Labels that would overlap are moved apart."""
    ends = sorted((scale.y(line[-1][1]), key, line[-1][0]) for key, line in lines.items())
    last = -math.inf
    furthest = max((x for _, (engine, _), x in ends if engine != "eastgate"), default=0.0)
    for y, (engine, case), x in ends:
        last = max(y, last + _LABEL_GAP_PX)
        ours = engine == "eastgate"
        stops = f" (to {x:,})" if not ours and x < furthest else ""
        name = _NAMES.get(engine, engine) + (", all" if case == "all" else "") + stops
        bold = ' font-weight="600"' if ours else ""
        at = scale.x(x if ours else furthest) + 8
        colour = _COLOURS.get(engine, "#555")
        yield f'<text x="{at:.1f}" y="{last + 4:.1f}" fill="{colour}"{bold}>{escape(name)}</text>'
