"""A graph as an SVG picture: with edges, or as a matrix if there are many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.reports.graph.cards import draw_cards
from eastgate.reports.graph.matrix import draw_matrix
from eastgate.reports.graph.model import Graph, ReachVerdict
from eastgate.reports.graph.picture import STYLE, Picture, box, text
from eastgate.reports.graph.text import list_sections

_NAMESPACE = "http://www.w3.org/2000/svg"
_LEGEND_HEIGHT, _LEGEND_LINE_HEIGHT = 46, 16  # height of the legend, and of a line of it
_MIN_WIDTH = 640
_MAX_EDGES = 45  # with more, a matrix is easier to read


def to_svg(graph: Graph, *, why: bool) -> str:
    """Render a graph as a self-contained image."""
    return draw(graph, why=why, attributes=f'xmlns="{_NAMESPACE}" ', style=True)


def draw(graph: Graph, *, why: bool, attributes: str = "", style: bool = False) -> str:
    """Draw a graph as an element for a page; `style`: include its style sheet."""
    picture = Picture(graph)
    notes = [*(list_sections(graph) if style else ()), *graph.notes]
    top = _LEGEND_HEIGHT + _LEGEND_LINE_HEIGHT * len(notes)
    is_dense = sum(len(entry.sources) for entry in picture.entries) > _MAX_EDGES
    drawing = (draw_matrix if is_dense else draw_cards)(picture, why=why, top=top)
    width, height = round(max(drawing.width, _MIN_WIDTH)), round(drawing.height)
    parts = [
        f'<svg {attributes}viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        "<title>Who can reach whom</title>",
        *([f"<style>{STYLE}</style>"] if style else []),
        f'<rect class="page" width="{width}" height="{height}"/>',
        *_legend(picture, notes, is_dense=is_dense),
        *drawing.elements,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _legend(picture: Picture, notes: Sequence[str], *, is_dense: bool) -> Iterator[str]:
    graph = picture.graph
    x = 24
    kinds = [("allow", "allowed", ""), ("depends", "depends on what it says", "")]
    if any(bundle.verdict is ReachVerdict.DENY for bundle in graph.bundles):
        kinds.append(("deny", "denied", ""))
    has_open = any(picture.is_open(name, entry.target) for entry in picture.entries for name in entry.sources)
    if has_open:
        kinds.append(("allow", "from anyone, from outside the namespace", ' data-open=""'))
    for verdict, words, is_open in kinds:
        square = f'<g class="cell-{verdict}"{is_open}><rect rx="3" {box(x + 9, 12, 16, 16)}/></g>'
        yield square if is_dense else f'<path class="edge {verdict}"{is_open} d="M{x} 20h34"/>'
        yield text(x + 42, 24, words, "legend")
        x += 60 + 7 * len(words)
    if not is_dense and any(bundle.leads_to for bundle in graph.bundles):
        yield f'<path class="edge on" d="M{x} 20h34"/>{text(x + 42, 24, "leads on to", "legend")}'
    for number, note in enumerate(notes):
        yield text(24, 40 + _LEGEND_LINE_HEIGHT * number, note, "legend")
