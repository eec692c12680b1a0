"""Nodes of callers, one for each cell of callers."""

from __future__ import annotations

from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    CallerKind,
    OtherAccounts,
    OtherNames,
)
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.reachability import Reachability
from eastgate.reports.graph.model import GraphNode, NodeKind

_KINDS = {
    CallerKind.SERVICE_ACCOUNT: NodeKind.SERVICE_ACCOUNT,
    CallerKind.SPIFFE: NodeKind.SPIFFE,
    CallerKind.NAME: NodeKind.NAME,
    CallerKind.NAMESPACE: NodeKind.OTHER_ACCOUNTS,
    CallerKind.SUFFIX: NodeKind.NAME,
    CallerKind.OTHER_ACCOUNT: NodeKind.OTHER_ACCOUNTS,
    CallerKind.OTHER_SPIFFE: NodeKind.OUTSIDE,
    CallerKind.OTHER_NAME: NodeKind.NAME,
    CallerKind.NONE: NodeKind.ANONYMOUS,
}


def caller_node(cell: CallerCell, callers: CallerCells) -> GraphNode:
    """Return the node of a cell of callers."""
    kind = _KINDS[cell.kind_in(callers.domain)]
    if kind is NodeKind.NAME and cell.example("")[0] is not None:
        kind = NodeKind.SPIFFE
    namespace, _ = cell.account_in(callers.domain) or ("", "")
    return GraphNode(cell.id_in(callers.domain), kind, namespace or None)


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
