"""Nodes of callers, one for each cell of callers."""

from __future__ import annotations

from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.reachability import Reachability
from eastgate.reports.graph.model import GraphNode, NodeKind
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

__all__ = ["caller_node", "redundant_callers"]


def caller_node(cell: CallerCell, callers: CallerCells) -> GraphNode:
    """Return the node of a cell of callers."""
    match cell:
        case IdentityCell(identity):
            account = callers.names.account(identity)
            if account is None:
                return GraphNode(identity, NodeKind.SPIFFE)
            return GraphNode(f"sa:{'/'.join(account)}", NodeKind.SERVICE_ACCOUNT, account[0])
        case AccountsIn(domain, namespace) if domain == callers.domain:
            return GraphNode(f"others:{namespace}", NodeKind.OTHER_ACCOUNTS, namespace)
        case AccountsIn():
            return GraphNode(str(cell), NodeKind.SPIFFE)
        case OtherAccounts():
            return GraphNode("others", NodeKind.OTHER_ACCOUNTS)
        case OtherIdentities():
            return GraphNode("outside", NodeKind.OUTSIDE)
        case Name(name) if cell.identity is not None:
            return GraphNode(name, NodeKind.SPIFFE)
        case Name() | NamesUnder() | OtherNames():
            return GraphNode(f"id:{cell}", NodeKind.NAME)
        case AnonymousCell():
            return GraphNode("anonymous", NodeKind.ANONYMOUS)


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
