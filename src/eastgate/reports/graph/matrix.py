"""A picture without edges: a row for each caller, a column for each destination, and a number for each condition.

Graphs with many edges are easier to read in this form. A legend below explains the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from eastgate.basics.records import dataclass
from eastgate.reports.graph.model import GraphNode, ReachVerdict
from eastgate.reports.graph.picture import Drawing, Picture, WayIn, attribute, box, caller_name, shorten, text, tooltip

_CELL, _MARGIN, _LINE = 22, 24, 16
_DIGIT_WIDTH = 5.6  # approximate width of a character in a cell
_CHAR_WIDTH = 6.2  # approximate width of a character
_NAMESPACE_GAP = 8  # gap between namespaces
_COLUMN_NAME_SLOPE = 0.7  # slope of the names of columns
_MAX_NOTE_CHARS = 150  # length of the explanation of a number
_Positions = dict[str, float]


def draw_matrix(picture: Picture, *, why: bool, top: float) -> Drawing:
    """Draw a picture below `top`."""
    rows, columns = picture.sources, picture.targets
    left = _MARGIN + max((len(_row_name(node)) for node in rows), default=0) * _CHAR_WIDTH + 14
    names = max((len(_column_name(node)) for node in columns), default=0) * _CHAR_WIDTH
    first = top + names * _COLUMN_NAME_SLOPE + 14
    numbers = _numbers(picture, why=why)
    cells = _cells(picture, numbers, why=why)
    width = max([_CELL, *(len(cell.words) * _DIGIT_WIDTH + 8 for cell in cells)])
    xs, right = _positions(columns, left, width)
    ys, bottom = _positions(rows, first, _CELL)
    notes_top = bottom + 2 * _LINE
    elements = [
        *_stripes(rows, ys, right),
        *_row_names(rows, ys, left),
        *_column_names(columns, xs, first, width),
        *_borders(columns, xs, first, bottom),
        *(_draw(cell, xs[cell.target], ys[cell.source], width, picture) for cell in cells),
        *_notes(numbers, notes_top),
    ]
    room = max(
        right + names * _COLUMN_NAME_SLOPE + _MARGIN, _MARGIN * 2 + max(map(len, numbers), default=0) * _CHAR_WIDTH
    )
    return Drawing(room, notes_top + _LINE * len(numbers) + _MARGIN, elements)


def _positions(nodes: Sequence[GraphNode], start: float, step: float) -> tuple[_Positions, float]:
    """Return the position of each node, with a gap between namespaces, and the end of the last one."""
    positions: _Positions = {}
    at = start
    for _, members in groupby(nodes, key=lambda node: node.namespace):
        for node in members:
            positions[node.id] = at
            at += step
        at += _NAMESPACE_GAP
    return positions, at - _NAMESPACE_GAP


def _row_name(node: GraphNode) -> str:
    name = caller_name(node)
    return f"{node.namespace} / {name}" if node.namespace is not None and node.name != node.namespace else name


def _column_name(node: GraphNode) -> str:
    return (
        f"{node.namespace} / {node.name}" if node.namespace is not None and node.name != node.namespace else node.name
    )


def _numbers(picture: Picture, *, why: bool) -> dict[str, int]:
    """Number the different texts of edges."""
    sayings = dict.fromkeys(_saying(entry, why=why) for entry in picture.entries)
    return {words: number for number, words in enumerate(sayings, 1)}


def _saying(entry: WayIn, *, why: bool) -> str:
    words = entry.label if entry.verdict is not ReachVerdict.DENY else f"denied: {entry.label}"
    leads_to = f" → {', '.join(entry.leads_to)}" if entry.leads_to else ""
    rules = f" (by {', '.join(entry.rules)})" if why and entry.rules else ""
    return f"{shorten(words, _MAX_NOTE_CHARS)}{leads_to}{rules}"


def _stripes(rows: Sequence[GraphNode], ys: _Positions, right: float) -> Iterator[str]:
    for number, node in enumerate(rows):
        if number % 2 == 0:
            yield f'<rect class="stripe" {box(_MARGIN, ys[node.id], right - _MARGIN, _CELL)}/>'


def _row_names(rows: Sequence[GraphNode], ys: _Positions, left: float) -> Iterator[str]:
    for node in rows:
        css = "title" if node.is_external else "name"
        name = text(left - 8, ys[node.id] + 15, _row_name(node), css, ' text-anchor="end"')
        yield f"<g data-node={attribute(node.id)}>{tooltip(node.id)}{name}</g>"


def _column_names(columns: Sequence[GraphNode], xs: _Positions, first: float, width: float) -> Iterator[str]:
    for node in columns:
        x, y = xs[node.id] + width / 2 + 3, first - 8
        name = text(x, y, _column_name(node), "name", f' transform="rotate(-45 {x:g} {y:g})"')
        yield f"<g data-node={attribute(node.id)}>{tooltip(node.id)}{name}</g>"


def _borders(columns: Sequence[GraphNode], xs: _Positions, first: float, bottom: float) -> Iterator[str]:
    for node in columns:
        yield f'<path class="line" d="M{xs[node.id]:g} {first:g}V{bottom:g}"/>'


@dataclass(frozen=True, slots=True)
class _Cell:
    """The outcome between a caller and a destination. It is open only if all of its edges are."""

    source: str
    target: str
    entries: tuple[WayIn, ...]
    words: str  # the numbers of its texts

    @property
    def verdict(self) -> ReachVerdict:
        verdicts = {entry.verdict for entry in self.entries}
        return verdicts.pop() if len(verdicts) == 1 else ReachVerdict.DEPENDS


def _cells(picture: Picture, numbers: dict[str, int], *, why: bool) -> list[_Cell]:
    by_ends: dict[tuple[str, str], list[WayIn]] = {}
    for entry in picture.entries:
        for source in entry.sources:
            by_ends.setdefault((source, entry.target), []).append(entry)
    cells = []
    for (source, target), entries in by_ends.items():
        shown = [numbers[_saying(entry, why=why)] for entry in entries]
        words = ",".join(map(str, shown)) if len(shown) <= 2 else f"{shown[0]}+"
        cells.append(_Cell(source, target, tuple(entries), words))
    return cells


def _draw(cell: _Cell, x: float, y: float, width: float, picture: Picture) -> str:
    hint = tooltip(f"{cell.source} → {cell.target}", *(entry.label for entry in cell.entries))
    number = text(x + width / 2, y + 14.5, cell.words)
    ends = f"data-from={attribute(picture.names(cell.source))} data-to={attribute(picture.names(cell.target))}"
    square = f'<rect rx="3" {box(x + 2, y + 2, width - 4, _CELL - 4)}/>'
    is_open = ' data-open=""' if picture.is_open(cell.source, cell.target) else ""
    return f'<g class="cell cell-{cell.verdict} edge-like" {ends}{is_open}>{hint}{square}{number}</g>'


def _notes(numbers: dict[str, int], top: float) -> Iterator[str]:
    for words, number in numbers.items():
        y = top + _LINE * number
        yield text(_MARGIN + 16, y, str(number), "title", ' text-anchor="end"')
        yield text(_MARGIN + 26, y, words, "name")
