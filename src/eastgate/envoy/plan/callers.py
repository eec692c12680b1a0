"""Values for every possible caller, found by the proxy's text for the caller.

A proxy has one text for a caller: the SPIFFE ID in its certificate, or a mark for anonymous callers. Linkerd's name of
a service account follows from the SPIFFE ID, and has no cells here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from eastgate.basics.records import dataclass
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    IdentityCell,
    OtherAccounts,
    OtherIdentities,
    cells_around,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ByCaller(Generic[T]):
    """A value for every caller: that of the narrowest cell."""

    known: dict[str, T]
    accounts: dict[AccountsIn, T]
    other_account: tuple[OtherAccounts, T]
    stranger: T
    nobody: T

    @classmethod
    def of(cls, cells: Iterable[CallerCell], values: Mapping[CallerCell, T]) -> ByCaller[T]:
        """Arrange the values of all cells."""
        every = list(cells)
        (others,) = (cell for cell in every if isinstance(cell, OtherAccounts))
        return cls(
            {cell.identity: values[cell] for cell in every if isinstance(cell, IdentityCell)},
            {cell: values[cell] for cell in every if isinstance(cell, AccountsIn)},
            (others, values[others]),
            values[OtherIdentities()],
            values[AnonymousCell()],
        )

    def map(self, of: Callable[[CallerCell, T], T]) -> ByCaller[T]:
        """Return the values mapped by a function of cell and value."""
        other, value = self.other_account
        return ByCaller(
            {identity: of(IdentityCell(identity), value) for identity, value in self.known.items()},
            {cell: of(cell, value) for cell, value in self.accounts.items()},
            (other, of(other, value)),
            of(OtherIdentities(), self.stranger),
            of(AnonymousCell(), self.nobody),
        )

    def cell(self, identity: str | None) -> CallerCell:
        """Return the narrowest cell of a caller."""
        return next(cell for cell in cells_around(identity, self.other_account[0].domain) if self._has(cell))

    def _has(self, cell: CallerCell) -> bool:
        match cell:
            case IdentityCell(identity):
                return identity in self.known
            case AccountsIn():
                return cell in self.accounts
            case _:
                return True

    def items(self) -> Iterator[tuple[CallerCell, T]]:
        """Yield every cell."""
        yield from ((IdentityCell(identity), value) for identity, value in self.known.items())
        yield from self.accounts.items()
        yield self.other_account
        yield OtherIdentities(), self.stranger
        yield AnonymousCell(), self.nobody
