"""Layout of a picture: from left to right, each node after the nodes that call it.

A workload is a card with a row for each way in, so that the text of an edge stands at its end. Callers that no other
node calls are chips in the first column. An edge that passes a column has a lane of its own there, between the cards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from textwrap import wrap

from eastgate.basics.records import dataclass
from eastgate.reports.graph.model import GraphNode
from eastgate.reports.graph.picture import Picture, WayIn, caller_name, shorten
from eastgate.reports.graph.text import short_rule

UNREACHED = "nobody may call it"
LINE_HEIGHT = 16  # height of a line of text
_TITLE, _ROW, _PAD, _GAP, _MARGIN = 24, 22, 8, 14, 24
_CHAR_WIDTH, _BOLD_CHAR_WIDTH = 6.4, 7.2  # approximate width of a character
_MAX_ROW_CHARS, _MAX_ROW_LINES = 42, 8
_CHIP_CHARS = 34
_MIN_CARD_WIDTH = 130
_COLUMN_GAP, _NARROW_COLUMN_GAP = 150, 90  # distance of columns, wide and narrow; narrow if there are many columns
_MAX_COLUMNS = 6
_SWEEPS = 6


@dataclass(slots=True)
class Chip:
    """A caller that is not a destination."""

    node: GraphNode
    lines: list[str]
    x: float = 0
    y: float = 0
    width: float = 0

    @property
    def height(self) -> float:
        return LINE_HEIGHT * len(self.lines) + 4

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    @property
    def room(self) -> float:
        """Return the width of the chip."""
        return max(map(len, self.lines)) * _CHAR_WIDTH + 20


@dataclass(slots=True)
class CardRow:
    """A way into a destination: its text, and below it the rules that decide."""

    entry: WayIn
    texts: list[str]
    rules: list[str]
    y: float = 0

    @property
    def lines(self) -> list[str]:
        return [*self.texts, *self.rules]

    @property
    def height(self) -> float:
        return _ROW - LINE_HEIGHT + LINE_HEIGHT * len(self.lines)

    @property
    def middle(self) -> float:
        return self.y + _ROW / 2


@dataclass(slots=True)
class Card:
    """A destination, and its rows."""

    node: GraphNode
    title: str
    rows: list[CardRow]
    x: float = 0
    y: float = 0
    width: float = 0

    @property
    def height(self) -> float:
        return _TITLE + (sum(row.height for row in self.rows) or LINE_HEIGHT) + _PAD

    @property
    def middle(self) -> float:
        return self.y + _TITLE / 2

    @property
    def kind(self) -> str:
        """Return the kind, which stands beside the title; empty for a pod."""
        return "" if self.node.kind == "pod" else str(self.node.kind)

    @property
    def room(self) -> float:
        """Return the width of the card."""
        texts = max((len(line) for row in self.rows for line in row.lines), default=len(UNREACHED)) * _CHAR_WIDTH + 34
        return max(texts, len(self.title) * _BOLD_CHAR_WIDTH + len(self.kind) * _CHAR_WIDTH + 40)


@dataclass(slots=True)
class Lane:
    """The place where the edges of one node pass a column."""

    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 2
    room: float = 0

    @property
    def middle(self) -> float:
        return self.y + 1


Item = Chip | Card | Lane


@dataclass(slots=True)
class Zone:
    """A namespace, or the nodes without one: chips or cards, one below the other; or a lane."""

    title: str | None
    items: list[Item]
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0

    @property
    def is_lane(self) -> bool:
        return isinstance(self.items[0], Lane)


@dataclass(slots=True)
class DrawnEdge:
    """An edge: its start, the lanes that it takes, and the row at which it ends."""

    source: str
    start: Chip | Card
    lanes: list[Lane]
    card: Card
    row: CardRow
    is_back: bool  # ends at the right side of its card, because its target is not in a later column

    @property
    def bend(self) -> float:
        """Return how far a back edge bends to the right of both cards."""
        return 40 + abs(self.row.middle - self.start.middle) / 8

    @property
    def right(self) -> float:
        """Return the x coordinate that the edge does not cross."""
        end = self.card.x + self.card.width
        return max(end, self.start.x + self.start.width) + (self.bend if self.is_back else 0)


@dataclass(slots=True)
class PictureLayout:
    """The places of all parts of a picture."""

    width: float
    height: float
    zones: list[Zone]
    chips: list[Chip]
    cards: dict[str, Card]  # by the id of a destination
    edges: list[DrawnEdge] = field(default_factory=list)


def lay_out(picture: Picture, *, why: bool, top: float) -> PictureLayout:
    """Place every part of a picture below `top`."""
    cards = _cards(picture, why=why)
    drawn = {name for entry in picture.entries if entry.target not in picture.behind for name in entry.sources}
    chips = {
        node.id: Chip(
            node, wrap(caller_name(node), _CHIP_CHARS, break_long_words=False, break_on_hyphens=False) or [""]
        )
        for node in picture.sources
        if node.id in drawn and node.id not in cards
    }
    columns = _columns(picture, cards)
    lanes: dict[tuple[str, int], Lane] = {}
    edges = []
    near: dict[int, list[Item]] = defaultdict(list)  # items at the other ends of the edges of an item, by its id
    for card in cards.values():
        for row in card.rows if card.node.id not in picture.behind else ():
            for name in row.entry.sources:
                start: Chip | Card = chips[name] if name in chips else cards[name]
                first, last = columns.get(name, 0), columns[card.node.id]
                passed = [lanes.setdefault((name, column), Lane()) for column in range(first + 1, last)]
                edges.append(DrawnEdge(name, start, passed, card, row, first >= last))
                _tie([start, *passed, card], near)
    for card in cards.values():
        for name in (name for row in card.rows for name in row.entry.leads_to):
            if name in cards:
                _tie([card, cards[name]], near)
    stacked = _zones(chips, cards, columns, lanes)
    height = _arrange(stacked, near, top)
    right = max([_place_columns(stacked), *(edge.right for edge in edges)])
    zones = [zone for column in stacked for zone in column]
    return PictureLayout(right + _MARGIN, height + _MARGIN, zones, list(chips.values()), cards, edges)


def _tie(items: Sequence[Item], near: dict[int, list[Item]]) -> None:
    for one, other in pairwise(items):
        near[id(one)].append(other)
        near[id(other)].append(one)


def _cards(picture: Picture, *, why: bool) -> dict[str, Card]:
    entries: dict[str, list[WayIn]] = defaultdict(list)
    for entry in picture.entries:
        entries[entry.target].append(entry)
    return {
        node.id: Card(
            node,
            node.name if node.namespace is not None else node.id,
            _rows(entries[node.id], picture, why=why),
        )
        for node in picture.targets
    }


def _rows(entries: Iterable[WayIn], picture: Picture, *, why: bool) -> list[CardRow]:
    rows = []
    for entry in entries:
        is_behind = entry.target in picture.behind
        text = f"{', '.join(entry.sources)} · {entry.label}" if is_behind else entry.label
        lines = wrap(text, _MAX_ROW_CHARS, break_on_hyphens=False)
        texts = [*lines[: _MAX_ROW_LINES - 1], shorten(" ".join(lines[_MAX_ROW_LINES - 1 :]), _MAX_ROW_CHARS)]
        rules = [shorten(f"by {short_rule(origin)}", _MAX_ROW_CHARS) for origin in entry.deciders] if why else []
        rows.append(CardRow(entry, [line for line in texts if line], rules))
    return rows


# Columns


def _columns(picture: Picture, cards: dict[str, Card]) -> dict[str, int]:
    """Return the column of each card: after all cards that call it, except those that it reaches itself."""
    calls: dict[str, dict[str, None]] = {name: {} for name in cards}
    for entry in picture.entries:
        if entry.target not in picture.behind:
            callers = (name for name in entry.sources if name in cards and name != entry.target)
            calls[entry.target] |= dict.fromkeys(callers)
        for name in entry.leads_to:
            if name in calls and name != entry.target:
                calls[name][entry.target] = None
    onward: dict[str, list[str]] = defaultdict(list)
    for name in cards:
        for caller in calls[name]:
            onward[caller].append(name)
    order, back = _callers_first([*(name for name in cards if not calls[name]), *cards], onward)
    columns = dict.fromkeys(cards, 1)
    for name in order:
        for called in onward[name]:
            if (name, called) not in back:
                columns[called] = min(max(columns[called], columns[name] + 1), _MAX_COLUMNS)
    return columns


def _callers_first(names: Iterable[str], onward: dict[str, list[str]]) -> tuple[list[str], set[tuple[str, str]]]:
    """Return names so that callers come before their targets. Edges that lead back to a caller are ignored."""
    left: list[str] = []  # in the order in which the search leaves them
    begun: set[str] = set()
    open_: set[str] = set()
    back: set[tuple[str, str]] = set()
    for root in names:
        path: list[tuple[str, Iterator[str]]] = []
        if root not in begun:
            begun.add(root)
            open_.add(root)
            path.append((root, iter(onward[root])))
        while path:
            name, rest = path[-1]
            called = next(rest, None)
            if called is None:
                path.pop()
                open_.discard(name)
                left.append(name)
            elif called in open_:
                back.add((name, called))
            elif called not in begun:
                begun.add(called)
                open_.add(called)
                path.append((called, iter(onward[called])))
    return left[::-1], back


def _zones(
    chips: dict[str, Chip], cards: dict[str, Card], columns: dict[str, int], lanes: dict[tuple[str, int], Lane]
) -> list[list[Zone]]:
    """Return the zones of each column."""
    stacked: dict[int, dict[str | None, Zone]] = defaultdict(dict)
    placed: dict[str, Chip | Card] = {**chips, **cards}
    for name, item in placed.items():
        home = item.node.namespace
        zone = stacked[columns.get(name, 0)].setdefault(home, Zone(home, []))
        zone.items.append(item)
    listed = {column: list(zones.values()) for column, zones in stacked.items()}
    for (_, column), lane in lanes.items():
        listed[column].append(Zone(None, [lane]))
    return [listed[column] for column in sorted(listed)]


# Positions


def _arrange(columns: Sequence[list[Zone]], near: dict[int, list[Item]], top: float) -> float:
    """Order zones and their items by the positions of the items that they have edges with, and stack them."""

    def beside(item: Item) -> float:
        ends = [other.middle for other in near[id(item)]]
        return sum(ends) / len(ends) if ends else float("inf")  # items without edges go last

    for column in columns:
        _stack(column, top)
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            _sort(column, beside)
            _stack(column, top)
    heights = [_stack(column, top) for column in columns]
    bottom = max(heights, default=top)
    for column, height in zip(columns, heights, strict=True):
        _stack(column, top + (bottom - height) / 2)
    return bottom


def _sort(zones: list[Zone], key: Callable[[Item], float]) -> None:
    for zone in zones:
        zone.items.sort(key=key)
    zones.sort(key=lambda zone: _mean(key(item) for item in zone.items))


def _mean(values: Iterable[float]) -> float:
    numbers = [value for value in values if value != float("inf")]
    return sum(numbers) / len(numbers) if numbers else float("inf")


def _stack(zones: Iterable[Zone], top: float) -> float:
    """Stack zones, and return the position where the last one ends."""
    y = top
    for zone in zones:
        zone.y = y
        if not zone.is_lane:
            y += _TITLE if zone.title is not None else _PAD
        for item in zone.items:
            item.y = y
            if isinstance(item, Card):
                _stack_rows(item)
            y += item.height + (_PAD if isinstance(item, Card) else 4)
        zone.height = y + (0 if zone.is_lane else _PAD) - zone.y
        y = zone.y + zone.height + (_PAD if zone.is_lane else _GAP)
    return y - _GAP


def _stack_rows(card: Card) -> None:
    y = card.y + _TITLE
    for row in card.rows:
        row.y = y
        y += row.height


def _place_columns(columns: Sequence[Sequence[Zone]]) -> float:
    x = float(_MARGIN)
    between = _COLUMN_GAP if len(columns) <= 3 else _NARROW_COLUMN_GAP
    for number, column in enumerate(columns):
        width = max(_width_of(zone) for zone in column)
        for zone in column:
            zone.x, zone.width = x, width
            for item in zone.items:
                item.x, item.width = x + _PAD, width - 2 * _PAD
        x += width + (between if number < len(columns) - 1 else 0)
    return x


def _width_of(zone: Zone) -> float:
    rooms = [len(zone.title or "") * _BOLD_CHAR_WIDTH, *(item.room for item in zone.items)]
    return max(max(rooms) + 2 * _PAD, _MIN_CARD_WIDTH)
