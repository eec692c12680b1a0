"""A picture with edges: callers as chips, destinations as cards that say what each edge is about."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from eastgate.reports.graph.layout import LINE, Card, CardRow, Chip, PictureLayout, Zone, lay_out
from eastgate.reports.graph.model import GraphNode, NodeKind
from eastgate.reports.graph.picture import Picture
from eastgate.reports.graph.shapes import Drawing, attribute, box, fit, text, tooltip

__all__ = ["caller_name", "draw_cards"]


def draw_cards(picture: Picture, *, why: bool, top: float) -> Drawing:
    """Draw a picture below `top`."""
    layout = lay_out(picture, why=why, top=top)
    elements = [
        *(line for zone in layout.zones for line in _zone(zone)),
        *_edges(layout),
        *(_chip(chip) for chip in layout.chips.values()),
        *(line for card in layout.cards for line in _card(card)),
    ]
    return Drawing(layout.width, layout.height, elements)


def _zone(zone: Zone) -> Iterator[str]:
    yield f'<rect class="zone" rx="6" {box(zone.x, zone.y, zone.width, zone.height)}/>'
    if zone.title is not None:
        yield text(zone.x + 10, zone.y + 16, zone.title, "zone-title")


def _chip(chip: Chip) -> str:
    node = chip.node
    css = f"chip{' outside' if node.is_external else ''}"
    outline = f'<rect rx="9" {box(chip.x, chip.y, chip.width, chip.height)}/>'
    name = text(chip.x + 10, chip.y + 14, fit(caller_name(node), chip.width - 16))
    return f'<g class="{css}" data-node={attribute(node.id)}>{tooltip(node.id)}{outline}{name}</g>'


def caller_name(node: GraphNode) -> str:
    if node.kind is NodeKind.OTHER_ACCOUNTS:
        return "other accounts" if node.namespace is not None else "other accounts of the trust domain"
    words = {"outside": "other trust domains", "anonymous": "no identity"}
    return words.get(node.id, node.name)


def _card(card: Card) -> Iterator[str]:
    names = " ".join(node.id for node in card.nodes)
    yield f'<g class="card" data-node={attribute(names)}>{tooltip(names)}'
    yield f'<rect rx="5" {box(card.x, card.y, card.width, card.height)}/>'
    for number, title in enumerate(card.titles):
        yield text(card.x + 14, card.y + 16 + LINE * number, title, "title")
    kind = str(card.nodes[0].kind) + (f" × {len(card.nodes)}" if len(card.nodes) > 1 else "")
    anchor = f'text-anchor="end" x="{card.x + card.width - 8:g}" y="{card.y + 16:g}"'
    yield f'<text class="kind" {anchor}>{escape(kind)}</text>'
    for row in card.rows:
        yield from _row(row, card)
    if not card.rows:
        yield text(card.x + card.width - 8, card.y + 28, "nobody", "nobody", ' text-anchor="end"')
    yield "</g>"


def _row(row: CardRow, card: Card) -> Iterator[str]:
    entry = row.entry
    who = ", ".join(entry.sources)
    hint = tooltip(f"{who} → {entry.target}", entry.label, *(f"by {rule}" for rule in entry.rules))
    yield f'<g class="row" data-from={attribute(" ".join(entry.sources))} data-verdict="{entry.verdict}">{hint}'
    yield f'<circle class="mark-{entry.verdict}" cx="{card.x:g}" cy="{row.middle:g}" r="4.5"/>'
    for number, line in enumerate(row.lines):
        css = "rule" if number >= len(row.texts) else ""
        yield text(card.x + (22 if number else 14), row.y + 15 + LINE * number, line, css)
    yield "</g>"


def _edges(layout: PictureLayout) -> Iterator[str]:
    lanes = _Lanes(layout)
    ways_on: dict[tuple[float, float, float, float], str] = {}
    for card in layout.cards:
        to = attribute(" ".join(node.id for node in card.nodes))
        for row in card.rows:
            entry = row.entry
            for name in row.sources:
                chip = layout.chips[name]
                line = lanes.line(chip.x + chip.width, chip.middle, card.x - 4, row.middle)
                hint = tooltip(f"{name} → {entry.target}", entry.label)
                ends = f"data-from={attribute(name)} data-to={to}"
                yield f'<path class="edge {entry.verdict}" {ends} d="{line}">{hint}</path>'
            for name in entry.leads_to:
                behind = layout.card_of.get(name)
                if behind is not None and behind is not card:
                    ways_on[card.x + card.width, row.middle, behind.x, behind.middle] = (
                        f"{entry.target} leads on to {name}"
                    )
    for between, words in ways_on.items():
        yield f'<path class="edge on" d="{_curve(*between)}">{tooltip(words)}</path>'


class _Lanes:
    """Leads edges round the column in the middle, each in a lane of its own."""

    def __init__(self, layout: PictureLayout) -> None:
        self._left = min((zone.x for zone in layout.middle), default=0.0)
        self._right = max((zone.x + zone.width for zone in layout.middle), default=0.0)
        self._above = min((zone.y for zone in layout.middle), default=0.0)
        self._below = max((zone.y + zone.height for zone in layout.middle), default=0.0)

    def line(self, x1: float, y1: float, x2: float, y2: float) -> str:
        """Return the line between two points."""
        if not self._left or x2 <= self._right:
            return _curve(x1, y1, x2, y2)
        if y1 + y2 <= self._above + self._below:
            self._above = lane = self._above - 5
        else:
            self._below = lane = self._below + 5
        there = _curve(x1, y1, self._left, lane)
        return f"{there}H{self._right:.1f}{_curve(self._right, lane, x2, y2, begin=False)}"


def _curve(x1: float, y1: float, x2: float, y2: float, *, begin: bool = True) -> str:
    bend = max(abs(x2 - x1) * 0.45, 40)
    start = f"M{x1:.1f} {y1:.1f}" if begin else ""
    return f"{start}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
