"""A listing: rows of cells, and the manifests that they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import brief, dataclass
from eastgate.reading.manifests import Document
from eastgate.reports.columns import columns, lay_out, narrow
from eastgate.reports.get.manifests import UNKNOWN_AGE

_NAMES = ("NAMESPACE", "NAME")
# columns that are left out, in this order
_OPTIONAL_COLUMNS = ("RULES", "CLASS", "TYPE", "AFFECTS", "SERVICEACCOUNT", "PORTS", "TARGET")
_MIN_CELL_CHARS = 9  # least width to which a cell is cut


@dataclass(frozen=True, slots=True)
class Listed:
    """One row. `-l` selects by `labels`. A derived object has the manifest of its source."""

    namespace: str
    name: str
    kind: str
    group: str
    cells: tuple[str, ...]
    wide: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    documents: tuple[Document, ...] = ()

    def __repr__(self) -> str:
        return brief(self, self.full_name)

    @property
    def full_name(self) -> str:
        """Return the name that `-o name` prints: `kind.group/name`, as kubectl does."""
        return f"{self.kind.lower()}{'.' + self.group if self.group else ''}/{self.name}"


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows under headers. The columns of `-o wide` come last."""

    headers: tuple[str, ...]
    wide: tuple[str, ...]
    rows: Sequence[Listed]

    def __repr__(self) -> str:
        return brief(self, f"rows={len(self.rows)}")

    def text(
        self, *, wide: bool = False, headers: bool = True, width: int | None = None, color: bool = False
    ) -> list[str]:
        """Render columns three spaces apart, as kubectl does, cut to `width`.

        Without any age, as in files that no API server stored, the column is left out.
        """
        titles = [*self.headers, *(self.wide if wide else ())]
        body = [[*row.cells, *(row.wide if wide else ())] for row in self.rows]
        if not body:
            return []
        kept = [at for at, title in enumerate(titles) if title != "AGE" or any(row[at] != UNKNOWN_AGE for row in body)]
        grid = [[printable(row[at]) for at in kept] for row in ([titles, *body])]
        gap = 3
        if width is not None and _width(grid, gap) > width:
            gap = 2
            grid = _cut(grid, width, gap)
        rows = [[[cell] for cell in row] for row in grid[1:]]
        lines = lay_out(columns(grid[0], rows, gap=gap), color=color)
        return lines if headers else lines[1:]


def _width(grid: list[list[str]], gap: int) -> int:
    return sum(_widths(grid, gap)) - gap


def _widths(grid: list[list[str]], gap: int) -> list[int]:
    return [max(len(row[at]) for row in grid) + gap for at in range(len(grid[0]))]


def _cut(grid: list[list[str]], width: int, gap: int) -> list[list[str]]:
    """Leave out the least important columns, and cut wide cells, except names."""
    for title in _OPTIONAL_COLUMNS:
        least = [
            [cell if title in _NAMES else cell[:_MIN_CELL_CHARS] for title, cell in zip(grid[0], row, strict=True)]
            for row in grid
        ]
        if _width(least, gap) <= width:
            break
        if title in grid[0]:
            at = grid[0].index(title)
            grid = [[*row[:at], *row[at + 1 :]] for row in grid]
    widths = _widths(grid, gap)
    firm = sum(size for size, title in zip(widths, grid[0], strict=True) if title in _NAMES)
    others = iter(
        narrow(
            [size for size, title in zip(widths, grid[0], strict=True) if title not in _NAMES],
            width + gap - firm,
            _MIN_CELL_CHARS + gap,
        )
    )
    sizes = [size if title in _NAMES else next(others) for size, title in zip(widths, grid[0], strict=True)]
    return [[_cut_cell(cell, size - gap) for cell, size in zip(row, sizes, strict=True)] for row in grid]


def _cut_cell(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1] + "…"
