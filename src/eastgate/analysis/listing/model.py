"""A listing: rows with their cells, and the manifests that they were made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eastgate.analysis.columns import columns
from eastgate.sources import Document

__all__ = ["Listed", "Listing"]


@dataclass(frozen=True, slots=True)
class Listed:
    """One row. `labels` are what `-l` selects by; a thing that is derived has the manifest of what it comes from."""

    namespace: str
    name: str
    kind: str
    group: str
    cells: tuple[str, ...]
    wide: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    documents: tuple[Document, ...] = ()

    @property
    def full_name(self) -> str:
        """What `-o name` prints: `kind.group/name`, as kubectl does."""
        return f"{self.kind.lower()}{'.' + self.group if self.group else ''}/{self.name}"


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows under headers; those of `-o wide` come last."""

    headers: tuple[str, ...]
    wide: tuple[str, ...]
    rows: Sequence[Listed]

    def text(self, *, wide: bool = False, headers: bool = True) -> list[str]:
        """In columns, three spaces apart as kubectl has them."""
        titles = [*self.headers, *(self.wide if wide else ())]
        body = [[[cell] for cell in (*row.cells, *(row.wide if wide else ()))] for row in self.rows]
        if not body:
            return []
        lines = columns(titles, body, gap=3)
        return lines if headers else lines[1:]
