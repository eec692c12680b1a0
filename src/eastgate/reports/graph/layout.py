"""Where the parts of a picture are: callers to the left, gateways in the middle, destinations to the right.

A destination is a card with a row for each way in, so that what is said of an edge stands at its end and never on
another. Destinations of one namespace that are alike share a card. What nearly everybody may do is said in the row,
and needs no edge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from textwrap import wrap

from eastgate.records import dataclass
from eastgate.reports.graph.model import GraphNode, NodeKind
from eastgate.reports.graph.picture import Picture, WayIn, shorten
from eastgate.reports.graph.words import short_rule

__all__ = ["Card", "CardRow", "Chip", "PictureLayout", "Zone", "lay_out"]

LINE = 16  # of text
_TITLE, _ROW, _PAD, _GAP, _MARGIN = 24, 22, 8, 14, 24
_CHAR = 6.4  # width of a character, about
_MOST_CHARS, _MOST_LINES = 64, 4  # of what a row says
_NARROWEST, _WIDEST = 150, 440
_BETWEEN = 170  # columns, where the edges are
_SWEEPS = 4
_MIDDLE = frozenset({NodeKind.GATEWAY, NodeKind.ROUTE})


@dataclass(slots=True)
class Chip:
    """A caller."""

    node: GraphNode
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = _ROW - 2

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(slots=True)
class CardRow:
    """A way into a destination: what it says, and below it which rules decide."""

    entry: WayIn
    texts: list[str]
    rules: list[str]
    sources: tuple[str, ...]  # those that have a chip
    y: float = 0

    @property
    def lines(self) -> list[str]:
        return [*self.texts, *self.rules]

    @property
    def height(self) -> float:
        return _ROW - LINE + LINE * len(self.lines)

    @property
    def middle(self) -> float:
        return self.y + _ROW / 2


@dataclass(slots=True)
class Card:
    """Destinations that are alike, and their rows."""

    nodes: list[GraphNode]
    titles: list[str]
    rows: list[CardRow]
    x: float = 0
    y: float = 0
    width: float = 0

    @property
    def height(self) -> float:
        return _TITLE - LINE + LINE * len(self.titles) + sum(row.height for row in self.rows) + _PAD

    @property
    def middle(self) -> float:
        return self.y + _TITLE / 2


@dataclass(slots=True)
class Zone:
    """A namespace, or what is in none: its chips or cards, one below the other."""

    title: str | None
    items: list[Chip] | list[Card]
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0


@dataclass(slots=True)
class PictureLayout:
    """A picture in its place."""

    width: float
    height: float
    callers: list[Zone]
    middle: list[Zone]
    targets: list[Zone]
    chips: dict[str, Chip] = field(default_factory=dict)
    cards: list[Card] = field(default_factory=list)
    card_of: dict[str, Card] = field(default_factory=dict)  # by the id of a destination

    @property
    def zones(self) -> list[Zone]:
        return [*self.callers, *self.middle, *self.targets]


def lay_out(picture: Picture, *, why: bool, top: float) -> PictureLayout:
    """Give every part of a picture its place, below `top`."""
    drawn = {name for entry in picture.entries if entry.target not in picture.behind for name in entry.sources}
    chips = {node.id: Chip(node) for node in picture.sources if node.id in drawn - picture.crowds.keys()}
    cards = _cards(picture, chips, why=why)
    by_name = {node.id: card for card in cards for node in card.nodes}
    sources: dict[str, list[CardRow]] = defaultdict(list)
    for card in cards:
        for row in card.rows:
            for name in row.sources:
                sources[name].append(row)
    callers = _zones(chips.values(), lambda chip: chip.node)
    middle = _zones((card for card in cards if card.nodes[0].kind in _MIDDLE), lambda card: card.nodes[0])
    targets = _zones((card for card in cards if card.nodes[0].kind not in _MIDDLE), lambda card: card.nodes[0])
    for _ in range(_SWEEPS):
        _stack(callers, top)
        _sort(middle, lambda card: _mean(chips[name].middle for row in card.rows for name in row.sources))
        _sort(targets, lambda card: _mean(chips[name].middle for row in card.rows for name in row.sources))
        _stack(middle, top)
        _stack(targets, top)
        _sort(callers, lambda chip: _mean(row.middle for row in sources[chip.node.id]))
    columns = [column for column in (callers, middle, targets) if column]
    heights = [_stack(column, top) for column in columns]
    bottom = max(heights, default=top)
    for column, height in zip(columns, heights, strict=True):
        _stack(column, top + min((bottom - height) / 2, 60 if len(column) > 1 else 200))
    right = _place_columns(columns)
    return PictureLayout(right + _MARGIN, bottom + _MARGIN, callers, middle, targets, chips, cards, by_name)


def _cards(picture: Picture, chips: dict[str, Chip], *, why: bool) -> list[Card]:
    """Return a card for each destination, and one for all of a namespace that are alike."""
    entries: dict[str, list[WayIn]] = defaultdict(list)
    for entry in picture.entries:
        entries[entry.target].append(entry)
    alike: dict[object, list[GraphNode]] = {}
    for node in picture.targets:
        ways = tuple(
            (e.sources, e.ports, e.verdict, e.condition, e.deciders if why else (), e.leads_to)
            for e in entries[node.id]
        )
        alike.setdefault((node.kind, node.namespace, ways), []).append(node)
    return [
        Card(nodes, _titles(nodes), _rows(entries[nodes[0].id], chips, picture, why=why)) for nodes in alike.values()
    ]


def _titles(nodes: Sequence[GraphNode]) -> list[str]:
    """Return the names of destinations that are alike, on as many lines as they need."""
    lines, current = [], ""
    for name in (node.name if node.namespace is not None else node.id for node in nodes):
        if current and len(current) + len(name) > _MOST_CHARS - 10:
            lines.append(f"{current},")
            current = ""
        current = f"{current}, {name}" if current else name
    return [*lines, current]


def _rows(entries: Iterable[WayIn], chips: dict[str, Chip], picture: Picture, *, why: bool) -> list[CardRow]:
    rows = []
    for entry in entries:
        has_edges = entry.target not in picture.behind
        unlinked = [name for name in entry.sources if not has_edges or name not in chips]
        text = f"{', '.join(unlinked)} · {entry.label}" if unlinked else entry.label
        lines = wrap(text, _MOST_CHARS, break_on_hyphens=False)
        texts = [*lines[: _MOST_LINES - 1], shorten(" ".join(lines[_MOST_LINES - 1 :]), _MOST_CHARS)]
        rules = [shorten(f"by {short_rule(origin)}", _MOST_CHARS) for origin in entry.deciders] if why else []
        drawn = tuple(name for name in entry.sources if name in chips) if has_edges else ()
        rows.append(CardRow(entry, [line for line in texts if line], rules, drawn))
    return rows


def _zones(items: Iterable[Chip] | Iterable[Card], node_of: Callable[..., GraphNode]) -> list[Zone]:
    by_namespace: dict[str | None, list[object]] = {}
    for item in items:
        by_namespace.setdefault(node_of(item).namespace, []).append(item)
    return [Zone(namespace, members) for namespace, members in by_namespace.items()]  # type: ignore[arg-type]


def _sort(zones: list[Zone], key: Callable[..., float]) -> None:
    """Order zones, and what is in them, by where their edges end."""
    for zone in zones:
        zone.items.sort(key=key)
    zones.sort(key=lambda zone: _mean(key(item) for item in zone.items))


def _mean(values: Iterable[float]) -> float:
    numbers = [value for value in values if value != float("inf")]
    return sum(numbers) / len(numbers) if numbers else float("inf")  # what has no edge goes last


def _stack(zones: Iterable[Zone], top: float) -> float:
    """Put zones one below the other; return where the last one ends."""
    y = top
    for zone in zones:
        zone.y = y
        y += _TITLE if zone.title is not None else _PAD
        for item in zone.items:
            item.y = y
            if isinstance(item, Card):
                _stack_rows(item)
            y += item.height + (_PAD if isinstance(item, Card) else 4)
        zone.height = y + _PAD - zone.y
        y = zone.y + zone.height + _GAP
    return y - _GAP


def _stack_rows(card: Card) -> None:
    y = card.y + _TITLE - LINE + LINE * len(card.titles)
    for row in card.rows:
        row.y = y
        y += row.height


def _place_columns(columns: Sequence[Sequence[Zone]]) -> float:
    x = float(_MARGIN)
    for number, column in enumerate(columns):
        width = max(_width_of(zone) for zone in column)
        for zone in column:
            zone.x, zone.width = x, width
            for item in zone.items:
                item.x, item.width = x + _PAD, width - 2 * _PAD
        x += width + (_BETWEEN if number < len(columns) - 1 else 0)
    return x


def _width_of(zone: Zone) -> float:
    longest = len(zone.title or "") + 2
    for item in zone.items:
        texts = [item.node.name] if isinstance(item, Chip) else [*item.titles, *(t for r in item.rows for t in r.lines)]
        longest = max(longest, *map(len, texts))
    return min(max(longest * _CHAR + 4 * _PAD + 12, _NARROWEST), _WIDEST + 4 * _PAD)
