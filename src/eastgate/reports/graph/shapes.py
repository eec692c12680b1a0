"""Shapes and texts of pictures. All that comes from manifests is made harmless here."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass

STYLE = """
svg { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.page { fill: #ffffff; }
.zone { fill: #f4f6f8; stroke: #cfd8dc; }
.zone-title { fill: #546e7a; font-weight: 600; letter-spacing: .03em; }
.chip rect, .card > rect { fill: #ffffff; stroke: #90a4ae; }
.chip text, .title { fill: #1c2b33; }
.title { font-weight: 600; }
.outside rect { stroke: #c62828; }
.kind, .legend, .rule { fill: #78909c; }
.row text { fill: #263238; }
.row .rule, .nobody { fill: #78909c; font-style: italic; }
.edge { fill: none; stroke-width: 1.4; opacity: .75; }
.edge:hover { stroke-width: 3; opacity: 1; }
.allow { stroke: #2e7d32; }
.depends { stroke: #b26a00; stroke-dasharray: 5 4; }
.deny { stroke: #c62828; stroke-dasharray: 1 4; }
.edge[data-open] { stroke: #c62828; }
.card > rect.bare { stroke: #c62828; stroke-dasharray: 4 3; }
.mark-allow { fill: #2e7d32; }
.mark-depends { fill: #ffffff; stroke: #b26a00; stroke-width: 1.6; stroke-dasharray: 2 1.5; }
.mark-deny { fill: #c62828; }
.stripe { fill: #f4f6f8; }
.line { stroke: #cfd8dc; }
.cell text { text-anchor: middle; font-size: 9px; }
.cell-allow rect { fill: #2e7d32; }
.cell-allow text { fill: #ffffff; }
.cell-deny rect { fill: #ffcdd2; }
.cell-deny text { fill: #b71c1c; }
.cell-depends rect { fill: #fff3e0; stroke: #b26a00; stroke-width: 1.4; stroke-dasharray: 3 2; }
.cell-depends text { fill: #7a4700; }
g[data-open] rect { stroke: #c62828; stroke-width: 2.6; }
.on { stroke: #78909c; stroke-width: 2.2; }
""".strip()


@dataclass(frozen=True, slots=True)
class Drawing:
    """Elements, and how much room they need."""

    width: float
    height: float
    elements: list[str]


def box(x: float, y: float, width: float, height: float) -> str:
    return f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'


def text(x: float, y: float, words: str, css: str = "", more: str = "") -> str:
    chosen = f' class="{css}"' if css else ""
    return f'<text{chosen} x="{x:g}" y="{y:g}"{more}>{escape(printable(words))}</text>'


def tooltip(*lines: str) -> str:
    return f"<title>{'&#10;'.join(escape(printable(line)) for line in lines)}</title>"


def attribute(words: str) -> str:
    return quoteattr(printable(words))
