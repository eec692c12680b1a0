"""A picture with edges: workloads as cards with a row for each way in, and other callers as chips."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from eastgate.reports.graph.layout import (
    LINE_HEIGHT,
    UNREACHED,
    Card,
    CardRow,
    Chip,
    DrawnEdge,
    PictureLayout,
    Zone,
    lay_out,
)
from eastgate.reports.graph.model import NodeKind
from eastgate.reports.graph.picture import Drawing, Picture, attribute, box, text, tooltip


def draw_cards(picture: Picture, *, why: bool, top: float) -> Drawing:
    """Draw a picture below `top`."""
    layout = lay_out(picture, why=why, top=top)
    elements = [
        *(line for zone in layout.zones if not zone.is_lane for line in _zone(zone)),
        *_edges(layout, picture),
        *(line for chip in layout.chips for line in _chip(chip)),
        *(line for card in layout.cards.values() for line in _card(card, picture)),
    ]
    return Drawing(layout.width, layout.height, elements)


def _zone(zone: Zone) -> Iterator[str]:
    yield f'<rect class="zone" rx="6" {box(zone.x, zone.y, zone.width, zone.height)}/>'
    if zone.title is not None:
        yield text(zone.x + 10, zone.y + 16, zone.title, "zone-title")


def _chip(chip: Chip) -> Iterator[str]:
    node = chip.node
    is_outside = node.is_external or node.kind is NodeKind.ANYONE
    yield f'<g class="chip{" outside" if is_outside else ""}" data-node={attribute(node.id)}>{tooltip(node.id)}'
    yield f'<rect rx="9" {box(chip.x, chip.y, chip.width, chip.height)}/>'
    for number, line in enumerate(chip.lines):
        yield text(chip.x + 10, chip.y + 14 + LINE_HEIGHT * number, line)
    yield "</g>"


def _card(card: Card, picture: Picture) -> Iterator[str]:
    names = picture.names(card.node.id)
    unprotected = ["no policy protects it"] if not card.node.is_protected else []
    yield f'<g class="card" data-node={attribute(names)}>{tooltip(names, *unprotected)}'
    css = "" if card.node.is_protected else ' class="bare"'
    yield f'<rect{css} rx="5" {box(card.x, card.y, card.width, card.height)}/>'
    yield text(card.x + 14, card.y + 16, card.title, "title")
    anchor = f'text-anchor="end" x="{card.x + card.width - 8:g}" y="{card.y + 16:g}"'
    if card.kind:
        yield f'<text class="kind" {anchor}>{escape(card.kind)}</text>'
    for row in card.rows:
        yield from _row(row, card)
    if not card.rows and card.node.kind is not NodeKind.ADDRESSES:
        yield text(card.x + 14, card.y + 16 + LINE_HEIGHT, UNREACHED, "nobody")
    yield "</g>"


def _row(row: CardRow, card: Card) -> Iterator[str]:
    entry = row.entry
    who = ", ".join(entry.sources)
    hint = tooltip(f"{who} → {entry.target}", entry.label, *(f"by {rule}" for rule in entry.rules))
    yield f'<g class="row" data-from={attribute(" ".join(entry.sources))} data-verdict="{entry.verdict}">{hint}'
    yield f'<circle class="mark-{entry.verdict}" cx="{card.x:g}" cy="{row.middle:g}" r="4.5"/>'
    for number, line in enumerate(row.lines):
        css = "rule" if number >= len(row.texts) else ""
        yield text(card.x + (22 if number else 14), row.y + 15 + LINE_HEIGHT * number, line, css)
    yield "</g>"


def _edges(layout: PictureLayout, picture: Picture) -> Iterator[str]:
    for edge in layout.edges:
        entry = edge.row.entry
        ends = f"data-from={attribute(picture.names(edge.source))} data-to={attribute(picture.names(entry.target))}"
        is_open = ' data-open=""' if picture.is_open(edge.source, entry.target) else ""
        hint = tooltip(f"{edge.source} → {entry.target}", entry.label)
        yield f'<path class="edge {entry.verdict}" {ends}{is_open} d="{_line(edge)}">{hint}</path>'
    ways_on: dict[str, str] = {}
    for card in layout.cards.values():
        for row in card.rows:
            for name in row.entry.leads_to:
                behind = layout.cards.get(name)
                if behind is not None and behind is not card:
                    line = _curve(card.x + card.width, row.middle, behind.x, behind.middle)
                    ways_on[f"M{card.x + card.width:.1f} {row.middle:.1f}{line}"] = f"{card.node.id} leads on to {name}"
    for line, words in ways_on.items():
        yield f'<path class="edge on" d="{line}">{tooltip(words)}</path>'


def _line(edge: DrawnEdge) -> str:
    """Return the path of the edge along its lanes to its row."""
    x, y = edge.start.x + edge.start.width, edge.start.middle
    path = f"M{x:.1f} {y:.1f}"
    if edge.is_back:
        end = edge.card.x + edge.card.width
        out, back = x + edge.bend, end + edge.bend
        return f"{path}C{out:.1f} {y:.1f} {back:.1f} {edge.row.middle:.1f} {end:.1f} {edge.row.middle:.1f}"
    for lane in edge.lanes:
        path += f"{_curve(x, y, lane.x, lane.middle)}H{lane.x + lane.width:.1f}"
        x, y = lane.x + lane.width, lane.middle
    return path + _curve(x, y, edge.card.x - 4, edge.row.middle)


def _curve(x1: float, y1: float, x2: float, y2: float) -> str:
    bend = max(abs(x2 - x1) * 0.45, 30)
    return f"C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
