"""The chart of throughput against the number of rules, for the README. The SVG is written without a library."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["draw", "points_of", "svg"]

Line = list[tuple[int, float]]

_WIDTH, _HEIGHT = 760, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 210, 46, 48
_NAMES = {
    "Eastgate": ("Eastgate", "#0b6e4f"),
    "list": ("a list, by filter state", "#c8553d"),
    "by certificate": ("a list, by certificate", "#7b5ea7"),
}
_PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_LABEL_GAP_PX = 15.0


def draw(results: Path, to: Path) -> bool:
    """Read the JSON of a run, and write the chart. Return whether there was anything to draw."""
    lines = points_of(json.loads(results.read_text(encoding="utf-8")))
    if lines:
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(svg(lines), encoding="utf-8")
    return bool(lines)


def points_of(saved: Mapping[str, Any]) -> dict[str, Line]:
    """Return the lines of the chart: numbers of rules and parts of the throughput, by enforcer."""
    lines: dict[str, Line] = {}
    for section in saved["sections"]:
        for point in section["points"]:
            if point.get("enforced") in _NAMES and point["which"] == "last":
                lines.setdefault(point["enforced"], []).append((point["rules"], point["part"]))
    return lines


def svg(lines: Mapping[str, Line]) -> str:
    """Return the chart: rules on a logarithmic axis, the part of the throughput on a linear one."""
    sizes = [x for line in lines.values() for x, _ in line]
    low, high = math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes)))
    scale = _Scale(low, max(high, low + 1))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            'font-family="system-ui, sans-serif" font-size="12" fill="#333">',
            "<title>Throughput of Envoy against the number of rules</title>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
            f'<text x="{_LEFT}" y="18" font-size="14" font-weight="600">Throughput of one Envoy by number of rules'
            "</text>",
            f'<text x="{_LEFT}" y="35" fill="#666">requests with mTLS, the last rule allows; 1: the same listeners '
            "without rules. Lists as Istio writes them</text>",
            *scale.grid(),
            *(_line(kind, line, scale) for kind, line in lines.items()),
            *_labels(lines, scale),
            "</svg>",
            "",
        ]
    )


class _Scale:
    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    def x(self, value: float) -> float:
        return _LEFT + (math.log10(value) - self._low) / (self._high - self._low) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - min(value, 1.1) / 1.1 * (_HEIGHT - _TOP - _BOTTOM)

    def grid(self) -> Iterator[str]:
        for part in _PARTS:
            y = self.y(part)
            yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>'
            yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{part:g}</text>'
        for power in range(self._low, self._high + 1):
            x = self.x(10.0**power)
            yield f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{10**power:,}</text>'
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        yield f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle" fill="#666">rules</text>'


def _line(kind: str, line: Line, scale: _Scale) -> str:
    colour = _NAMES[kind][1]
    at = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in line)
    width = 3 if kind == "Eastgate" else 1.6
    dots = "".join(f'<circle cx="{scale.x(x):.1f}" cy="{scale.y(y):.1f}" r="2.5"/>' for x, y in line)
    return (
        f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="{width}"/><g fill="{colour}">{dots}</g>'
    )


def _labels(lines: Mapping[str, Line], scale: _Scale) -> Iterator[str]:
    """Yield a label with the last value at the end of each line. Labels that would overlap are moved apart."""
    last = math.inf
    for y, kind, (x, part) in sorted(((scale.y(line[-1][1]), kind, line[-1]) for kind, line in lines.items()))[::-1]:
        last = min(y, last - _LABEL_GAP_PX)
        name, colour = _NAMES[kind]
        bold = ' font-weight="600"' if kind == "Eastgate" else ""
        label = escape(f"{name}: {part:.2g}")
        yield f'<text x="{scale.x(x) + 8:.1f}" y="{last + 4:.1f}" fill="{colour}"{bold}>{label}</text>'
