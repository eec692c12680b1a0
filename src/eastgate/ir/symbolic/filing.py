"""Arms filed by caller, so that those of one caller are found without looking at all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eastgate.ir import AccountsOf, And, Is, OneOf, Or, Predicate
from eastgate.ir.attributes import IDENTITY, MESH_NAME
from eastgate.ir.service_accounts import account_of
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    CallerCell,
    IdentityCell,
    Name,
)


class PredicatesByCaller:
    """The places of predicates in their order, by the cells of callers for whom they may hold."""

    def __init__(self, predicates: Iterable[Predicate], callers: CallerCells) -> None:
        self._callers = callers
        self._by_cell: dict[CallerCell, list[int]] = {}
        self._anyone: list[int] = []
        for index, predicate in enumerate(predicates):
            concerned = self._concerned(predicate)
            if concerned is None:
                self._anyone.append(index)
            else:
                for cell in concerned:
                    self._by_cell.setdefault(cell, []).append(index)

    def concerning(self, cell: CallerCell) -> Sequence[int]:
        """Return the places of all predicates that may hold for a caller of this cell, in order."""
        lists = [self._anyone, self._by_cell.get(cell, [])]
        if isinstance(cell, Name) and cell.identity is not None:
            lists.append(self._by_cell.get(IdentityCell(cell.identity), []))
        if isinstance(cell, IdentityCell | Name) and cell.identity is not None:
            account = account_of(cell.identity)
            if account is not None:
                lists.append(self._by_cell.get(AccountsIn(*account[:2]), []))
        filled = [indices for indices in lists if indices]
        if len(filled) <= 1:
            return filled[0] if filled else []
        return sorted({index for indices in filled for index in indices})

    def _concerned(self, predicate: Predicate) -> frozenset[CallerCell] | None:
        """Return the cells that a predicate may hold for; None: any."""
        match predicate:
            case Is(attribute, OneOf()) if attribute in (IDENTITY, MESH_NAME):
                return frozenset((*self._callers.named_by(predicate), *self._callers.literally_named_by(predicate)))
            case Is(attribute, AccountsOf()) if attribute == IDENTITY:
                return frozenset(self._callers.named_by(predicate))
            case And(parts):
                narrow = [cells for part in parts if (cells := self._concerned(part)) is not None]
                return min(narrow, key=len) if narrow else None
            case Or(parts):
                every: set[CallerCell] = set()
                for part in parts:
                    cells = self._concerned(part)
                    if cells is None:
                        return None
                    every |= cells
                return frozenset(every)
            case _:
                return None
