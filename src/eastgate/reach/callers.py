"""Cells of callers as tables show them, and their ids."""

from __future__ import annotations

from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.ir.symbolic.callers import (
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


class CallerKind(StrEnum):
    """The kinds of callers in the order in which tables show them: exact ones, groups, and all others."""

    SERVICE_ACCOUNT = "serviceAccount"
    SPIFFE = "spiffe"
    NAME = "name"
    NAMESPACE = "namespace"
    SUFFIX = "suffix"
    OTHER_ACCOUNT = "otherServiceAccount"
    OTHER_SPIFFE = "otherSpiffe"
    OTHER_NAME = "otherName"
    NONE = "none"


_EXACT = frozenset({CallerKind.SERVICE_ACCOUNT, CallerKind.SPIFFE, CallerKind.NAME, CallerKind.NONE})
_ORDER = {kind: index for index, kind in enumerate(CallerKind)}


@dataclass(frozen=True, slots=True)
class CallerEntry:
    """A cell of callers in a table: `identity` and `mesh_name` are those of any of them."""

    kind: CallerKind
    name: str
    identity: str | None
    mesh_name: str | None

    @property
    def is_exact(self) -> bool:
        """Return whether this is one identity, and not a group of them."""
        return self.kind in _EXACT

    @property
    def order(self) -> tuple[int, str]:
        """Return the key by which tables sort callers."""
        return _ORDER[self.kind], self.name


def entry_of(cell: CallerCell, callers: CallerCells) -> CallerEntry:
    """Return how a table shows a cell."""
    return CallerEntry(*_kind_and_name(cell, callers), *callers.representative(cell))


def _kind_and_name(cell: CallerCell, callers: CallerCells) -> tuple[CallerKind, str]:
    match cell:
        case IdentityCell(identity):
            account = callers.names.account(identity)
            if account is None:
                return CallerKind.SPIFFE, identity
            return CallerKind.SERVICE_ACCOUNT, "/".join(account)
        case AccountsIn(domain, namespace):
            return (CallerKind.NAMESPACE, namespace) if domain == callers.domain else (CallerKind.SUFFIX, str(cell))
        case OtherAccounts():
            return CallerKind.OTHER_ACCOUNT, ""
        case OtherIdentities():
            return CallerKind.OTHER_SPIFFE, ""
        case Name(name):
            return CallerKind.NAME, name
        case NamesUnder():
            return CallerKind.SUFFIX, str(cell)
        case OtherNames():
            return CallerKind.OTHER_NAME, ""
        case AnonymousCell():
            return CallerKind.NONE, ""


def caller_id(cell: CallerCell, callers: CallerCells) -> str:
    """Return the id of a cell, by which graphs and comparisons name it."""
    match cell:
        case IdentityCell(identity):
            account = callers.names.account(identity)
            return identity if account is None else f"sa:{'/'.join(account)}"
        case AccountsIn(domain, namespace):
            return f"others:{namespace}" if domain == callers.domain else str(cell)
        case OtherAccounts():
            return "others"
        case OtherIdentities():
            return "outside"
        case Name() | NamesUnder() | OtherNames():
            return str(cell) if isinstance(cell, Name) and cell.identity is not None else f"id:{cell}"
        case AnonymousCell():
            return "anonymous"
