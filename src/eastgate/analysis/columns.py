"""Text in columns: each as wide as its widest entry, two spaces apart, the last one as long as it likes."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.printable import printable

__all__ = ["Lines", "columns"]

Lines = list[str]  # of one cell; most have one


def columns(
    headers: Sequence[str] | None,
    rows: Sequence[Sequence[Lines]],
    *,
    least: Sequence[int] = (),
    gap: int = 2,
) -> list[str]:
    """Rows of cells, each of which may have several lines. Whatever a cell holds stays in it.

    `least` are widths that columns have in any case.
    """
    shown = [[[printable(line) for line in cell] for cell in row] for row in rows]
    every = [[[header] for header in headers], *shown] if headers is not None else shown
    count = max((len(row) for row in every), default=0)
    widths = [
        max([*least[place : place + 1], *(len(line) + gap for row in every for line in row[place])], default=0)
        for place in range(count)
    ]
    return [line for row in every for line in _lines(row, widths)]


def _lines(row: Sequence[Lines], widths: Sequence[int]) -> list[str]:
    height = max((len(cell) for cell in row), default=0)
    return [
        "".join(
            (cell[at] if at < len(cell) else "").ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for at in range(height)
    ]
