"""Requests that disprove a statement: a request of some callers that is allowed, or denied, although none may be.

The search looks for a request that reaches a branch with that verdict. It is exact: if it finds nothing, no such
request exists. If there are too many cases, it raises `GaveUp`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.basics.records import dataclass
from eastgate.ir import ALWAYS, And, Is, Not, OneOf, Predicate, Present, Request, mentions
from eastgate.ir.attributes import MCP_METHOD, MCP_TOOL, METHOD
from eastgate.ir.symbolic.callers import CallerCell
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.ir.symbolic.simplify import both
from eastgate.ir.symbolic.trees import truth
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.destinations import Entrance
from eastgate.reach.endings import Branch, Ending
from eastgate.reach.reachability import Reachability
from eastgate.reading.mcp.messages import NAMED

BODILESS = And((Is(METHOD, OneOf(frozenset({"GET", "HEAD", "DELETE", "OPTIONS"}))), Is(MCP_METHOD, Present())))
"""A predicate that no request meets: without a body it carries no JSON-RPC message."""

IMPOSSIBLE: tuple[Predicate, ...] = (
    BODILESS,
    And((Is(MCP_TOOL, Present()), Not(Is(MCP_METHOD, OneOf(frozenset(NAMED)))))),  # only some messages name something
    And((Is(MCP_METHOD, Present()), Not(Is(METHOD, Present())))),
)
"""Predicates that no request meets."""

_MESSAGES = frozenset({MCP_METHOD, MCP_TOOL})


@dataclass(frozen=True, slots=True)
class Witness:
    """A request of a caller cell, and its verdict. Attributes that the request leaves out do not matter."""

    cell: CallerCell
    request: Request
    ending: Ending


def witnesses(
    reach: Reachability, entrance: Entrance, callers: CallerSet, where: Predicate = ALWAYS, *, allowed: bool
) -> Iterator[Witness]:
    """Yield requests of these callers that meet a condition and get such a verdict, one for each branch with it.

    Raises GaveUp if there are too many cases.
    """
    for answer in reach.answers(entrance, callers):
        some = answer.callers & callers
        if not some or answer.allowed is (not allowed):
            continue
        cell = next(reach.callers.cells_in(some))
        facts = Facts.of_caller(cell, reach.callers.callers).and_(entrance.facts)
        if answer.too_many:
            raise GaveUp
        for request in _requests(answer.branches, residual(where, facts), allowed=allowed):
            ending = next(branch.end for branch in answer.branches if truth(branch.when, request))
            yield Witness(cell, request, ending)


def _requests(branches: Sequence[Branch], where: Predicate, *, allowed: bool) -> Iterator[Request]:
    asked = (where, *(branch.when for branch in branches))
    before: list[Predicate] = list(IMPOSSIBLE) if any(mentions(predicate) & _MESSAGES for predicate in asked) else []
    for branch in branches:
        if branch.end.allowed is not allowed:
            before.append(branch.when)
            continue
        request = witness(both((branch.when, where)), before)
        if request is not None:
            yield request
