"""Nodes of callers, one for each cell of callers."""

from __future__ import annotations

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
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.callers import caller_id
from eastgate.reach.reachability import Reachability
from eastgate.reports.graph.model import GraphNode, NodeKind


def caller_node(cell: CallerCell, callers: CallerCells) -> GraphNode:
    """Return the node of a cell of callers."""
    return GraphNode(caller_id(cell, callers), *_kind_and_namespace(cell, callers))


def _kind_and_namespace(cell: CallerCell, callers: CallerCells) -> tuple[NodeKind, str | None]:
    match cell:
        case IdentityCell(identity):
            account = callers.names.account(identity)
            return (NodeKind.SPIFFE, None) if account is None else (NodeKind.SERVICE_ACCOUNT, account[0])
        case AccountsIn(domain, namespace):
            return (NodeKind.OTHER_ACCOUNTS, namespace) if domain == callers.domain else (NodeKind.SPIFFE, None)
        case OtherAccounts():
            return NodeKind.OTHER_ACCOUNTS, None
        case OtherIdentities():
            return NodeKind.OUTSIDE, None
        case Name() if cell.identity is not None:
            return NodeKind.SPIFFE, None
        case Name() | NamesUnder() | OtherNames():
            return NodeKind.NAME, None
        case AnonymousCell():
            return NodeKind.ANONYMOUS, None


def redundant_callers(reach: Reachability) -> CallerSet:
    """Return other accounts of namespaces to whom everywhere the same happens as to those of no namespace.

    So it is with names of the mesh that nobody gave, if the same happens to callers without any.
    """
    callers = reach.callers
    accounts = callers.set_of([OtherAccounts(callers.callers.domain)])
    nobody = callers.set_of([AnonymousCell()])
    like_accounts = like_nobody = callers.everybody
    for destination in reach.destinations:
        for entrance in destination.entrances:
            for answer in reach.answers(entrance):
                if answer.callers & accounts:
                    like_accounts &= answer.callers
                if answer.callers & nobody:
                    like_nobody &= answer.callers
    of_namespaces = callers.set_of(
        cell for cell in callers.cells if isinstance(cell, AccountsIn) and cell.domain == callers.callers.domain
    )
    return (like_accounts & of_namespaces) | (like_nobody & callers.set_of([OtherNames()]))
