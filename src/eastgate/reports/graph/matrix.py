"""A picture without edges: a row for each caller, a column for each destination, and a number that says what.

Graphs with many edges are read more easily so. What a number stands for is said below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from eastgate.reports.graph.cards import caller_name
from eastgate.reports.graph.model import GraphNode, ReachVerdict
from eastgate.reports.graph.picture import Picture, WayIn, shorten
from eastgate.reports.graph.shapes import Drawing, attribute, box, text, tooltip

__all__ = ["draw_matrix"]

_CELL, _MARGIN, _LINE = 22, 24, 16
_CHAR = 6.2  # width of a character, about
_GAP = 8  # between namespaces
_SLOPE = 0.7  # of the names of columns
_NOTE = 150  # characters of what a number stands for
_Positions = dict[str, float]


def draw_matrix(picture: Picture, *, why: bool, top: float) -> Drawing:
    """Draw a picture below `top`."""
    rows, columns = picture.sources, picture.targets
    left = _MARGIN + max((len(_row_name(node)) for node in rows), default=0) * _CHAR + 14
    names = max((len(_column_name(node)) for node in columns), default=0) * _CHAR
    first = top + names * _SLOPE + 14
    xs, right = _positions(columns, left)
    ys, bottom = _positions(rows, first)
    numbers = _numbers(picture, why=why)
    notes_top = bottom + 2 * _LINE
    elements = [
        *_stripes(rows, ys, right),
        *_row_names(rows, ys, left),
        *_column_names(columns, xs, first),
        *_borders(columns, xs, first, bottom),
        *_cells(picture, xs, ys, numbers, why=why),
        *_notes(numbers, notes_top),
    ]
    width = max(right + names * _SLOPE + _MARGIN, _MARGIN * 2 + max(map(len, numbers), default=0) * _CHAR)
    return Drawing(width, notes_top + _LINE * len(numbers) + _MARGIN, elements)


def _positions(nodes: Sequence[GraphNode], start: float) -> tuple[_Positions, float]:
    """Return where each node is, with a gap between namespaces, and where the last one ends."""
    positions: _Positions = {}
    at = start
    for _, members in groupby(nodes, key=lambda node: node.namespace):
        for node in members:
            positions[node.id] = at
            at += _CELL
        at += _GAP
    return positions, at - _GAP


def _row_name(node: GraphNode) -> str:
    name = caller_name(node)
    return f"{node.namespace} / {name}" if node.namespace is not None and node.name != node.namespace else name


def _column_name(node: GraphNode) -> str:
    return (
        f"{node.namespace} / {node.name}" if node.namespace is not None and node.name != node.namespace else node.name
    )


def _numbers(picture: Picture, *, why: bool) -> dict[str, int]:
    """Number what is said of edges."""
    sayings = dict.fromkeys(_saying(entry, why=why) for entry in picture.entries)
    return {words: number for number, words in enumerate(sayings, 1)}


def _saying(entry: WayIn, *, why: bool) -> str:
    words = entry.label if entry.verdict is not ReachVerdict.DENY else f"denied: {entry.label}"
    leads_to = f" → {', '.join(entry.leads_to)}" if entry.leads_to else ""
    rules = f" (by {', '.join(entry.rules)})" if why and entry.rules else ""
    return f"{shorten(words, _NOTE)}{leads_to}{rules}"


def _stripes(rows: Sequence[GraphNode], ys: _Positions, right: float) -> Iterator[str]:
    for number, node in enumerate(rows):
        if number % 2 == 0:
            yield f'<rect class="stripe" {box(_MARGIN, ys[node.id], right - _MARGIN, _CELL)}/>'


def _row_names(rows: Sequence[GraphNode], ys: _Positions, left: float) -> Iterator[str]:
    for node in rows:
        css = "title" if node.is_external else "name"
        name = text(left - 8, ys[node.id] + 15, _row_name(node), css, ' text-anchor="end"')
        yield f"<g data-node={attribute(node.id)}>{tooltip(node.id)}{name}</g>"


def _column_names(columns: Sequence[GraphNode], xs: _Positions, first: float) -> Iterator[str]:
    for node in columns:
        x, y = xs[node.id] + _CELL / 2 + 3, first - 8
        name = text(x, y, _column_name(node), "name", f' transform="rotate(-45 {x:g} {y:g})"')
        yield f"<g data-node={attribute(node.id)}>{tooltip(node.id)}{name}</g>"


def _borders(columns: Sequence[GraphNode], xs: _Positions, first: float, bottom: float) -> Iterator[str]:
    for node in columns:
        yield f'<path class="line" d="M{xs[node.id]:g} {first:g}V{bottom:g}"/>'


def _cells(picture: Picture, xs: _Positions, ys: _Positions, numbers: dict[str, int], *, why: bool) -> Iterator[str]:
    cells: dict[tuple[str, str], list[WayIn]] = {}
    for entry in picture.entries:
        for source in entry.sources:
            cells.setdefault((source, entry.target), []).append(entry)
    for (source, target), entries in cells.items():
        yield _cell(source, target, entries, xs[target], ys[source], [numbers[_saying(e, why=why)] for e in entries])


def _cell(source: str, target: str, entries: Sequence[WayIn], x: float, y: float, shown: Sequence[int]) -> str:
    """Draw one cell: it is open only if all that is said in it is."""
    verdicts = {entry.verdict for entry in entries}
    verdict = verdicts.pop() if len(verdicts) == 1 else ReachVerdict.DEPENDS
    hint = tooltip(f"{source} → {target}", *(entry.label for entry in entries))
    words = ",".join(map(str, shown)) if len(shown) <= 2 else f"{shown[0]}+"
    number = text(x + _CELL / 2, y + 14.5, words)
    ends = f"data-from={attribute(source)} data-to={attribute(target)}"
    square = f'<rect rx="3" {box(x + 2, y + 2, _CELL - 4, _CELL - 4)}/>'
    return f'<g class="cell cell-{verdict} edge-like" {ends}>{hint}{square}{number}</g>'


def _notes(numbers: dict[str, int], top: float) -> Iterator[str]:
    for words, number in numbers.items():
        y = top + _LINE * number
        yield text(_MARGIN + 16, y, str(number), "title", ' text-anchor="end"')
        yield text(_MARGIN + 26, y, words, "name")
