"""Entries of tables for caller cells."""

from __future__ import annotations

from eastgate.basics.records import dataclass
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import CallerCell, CallerKind

_EXACT = frozenset({CallerKind.SERVICE_ACCOUNT, CallerKind.SPIFFE, CallerKind.NAME, CallerKind.NONE})
_ORDER = {kind: index for index, kind in enumerate(CallerKind)}


@dataclass(frozen=True, slots=True)
class CallerEntry:
    """A caller cell in a table. `identity` and `mesh_name` are those of one of its callers."""

    kind: CallerKind
    name: str
    identity: str | None
    mesh_name: str | None

    @property
    def is_exact(self) -> bool:
        """Return whether the entry is one identity, and not a group of them."""
        return self.kind in _EXACT

    @property
    def order(self) -> tuple[int, str]:
        """Return the sort key of callers in tables."""
        return _ORDER[self.kind], self.name


def entry_of(cell: CallerCell, callers: CallerCells) -> CallerEntry:
    """Return the table entry of a cell."""
    return CallerEntry(cell.kind_in(callers.domain), cell.name_in(callers.domain), *callers.representative(cell))
