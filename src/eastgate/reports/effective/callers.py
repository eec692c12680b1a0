"""Cells of callers as a table shows them."""

from __future__ import annotations

from eastgate.records import dataclass
from eastgate.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    CallerCells,
    IdentityCell,
    Name,
    NamesUnder,
    OtherAccounts,
    OtherIdentities,
    OtherNames,
)

__all__ = ["KINDS", "CallerEntry", "entry_of"]

# What a caller is, in the order in which they are shown: those who are named, those of a group, and the rest.
KINDS = (
    "serviceAccount",
    "spiffe",
    "name",
    "namespace",
    "suffix",
    "otherServiceAccount",
    "otherSpiffe",
    "otherName",
    "none",
)


@dataclass(frozen=True, slots=True)
class CallerEntry:
    """A cell of callers in a table: `kind` is one of `KINDS`; `identity` and `mesh_name` are those of any of them."""

    kind: str
    name: str
    identity: str | None
    mesh_name: str | None

    @property
    def is_exact(self) -> bool:
        """Whether this is one identity, and not a group of them."""
        return self.kind in ("serviceAccount", "spiffe", "name", "none")

    @property
    def order(self) -> tuple[int, str]:
        """Where it stands in a table."""
        return KINDS.index(self.kind), self.name


def entry_of(cell: CallerCell, callers: CallerCells) -> CallerEntry:
    """Return how a table shows a cell."""
    return CallerEntry(*_kind_and_name(cell, callers), *callers.representative(cell))


def _kind_and_name(cell: CallerCell, callers: CallerCells) -> tuple[str, str]:
    match cell:
        case IdentityCell(identity):
            account = callers.names.account(identity)
            return ("serviceAccount", "/".join(account)) if account is not None else ("spiffe", identity)
        case AccountsIn(domain, namespace):
            return ("namespace", namespace) if domain == callers.domain else ("suffix", str(cell))
        case OtherAccounts():
            return "otherServiceAccount", ""
        case OtherIdentities():
            return "otherSpiffe", ""
        case Name(name):
            return "name", name
        case NamesUnder():
            return "suffix", str(cell)
        case OtherNames():
            return "otherName", ""
        case AnonymousCell():
            return "none", ""
