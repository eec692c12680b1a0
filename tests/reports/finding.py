"""The row of an effective table for a concrete request, found without the code that made the table."""

from __future__ import annotations

import re

from eastgate.ir import Request, consents, mentions
from eastgate.ir.attributes import IDENTITY, MCP_METHOD, MCP_TOOL, MESH_NAME, PORT
from eastgate.ir.symbolic.stages import answer_attribute, is_answer
from eastgate.ir.symbolic.trees import truth
from eastgate.reach.callers import CallerEntry
from eastgate.reach.endings import Branch
from eastgate.reach.requests import EffectiveMessage
from eastgate.reach.table import EffectiveDestination, EffectiveTable, Row


def row_of(table: EffectiveTable, request: Request) -> Row:
    """Return the one row that covers a request."""
    caller = _caller(table.callers, request)
    destination = _destination(table.destinations, request)
    message = _message(table.messages, request)
    rows = [
        row
        for row in table.rows
        if caller in row.callers and destination in row.destinations and message in row.messages
    ]
    assert len(rows) == 1, (caller, destination.ports, str(message))
    return rows[0]


def branch_of(row: Row, request: Request) -> Branch:
    """Return the first branch whose condition holds. The answers of authorizers are part of the conditions."""
    answers = {
        answer_attribute(name): "allow" if consents(answer) else "deny" for name, answer in request.answers.items()
    }
    complete = Request({**request.values, **answers})
    for branch in row.cell.branches:
        held = truth(branch.when, _with_silence(complete, branch))
        assert held is not None, branch.when
        if held:
            return branch
    raise AssertionError("the branches of a row leave nothing open")


def _with_silence(request: Request, branch: Branch) -> Request:
    silent = {a: None for a in mentions(branch.when) if is_answer(a) and a not in request.values}
    return Request({**request.values, **silent})


def _caller(callers: tuple[CallerEntry, ...], request: Request) -> CallerEntry:
    identity, name = request.values.get(IDENTITY), request.values.get(MESH_NAME)
    for one in callers:
        if one.is_exact and one.identity == identity and (identity is not None or one.mesh_name == name):
            return one
    kinds: dict[str, CallerEntry] = {one.kind: one for one in callers}
    groups = [one for one in callers if one.kind in ("namespace", "suffix") and _is_of(one, kinds, identity, name)]
    if groups:
        return max(groups, key=lambda one: len(one.name))
    if isinstance(identity, str):
        return kinds["otherServiceAccount" if _account(identity, kinds) else "otherSpiffe"]
    return kinds["otherName" if name is not None and "otherName" in kinds else "none"]


def _account(identity: str, kinds: dict[str, CallerEntry]) -> str | None:
    """Return the namespace of a service account of this mesh."""
    stem = str(kinds["otherServiceAccount"].identity).partition("/ns/")[0]
    found = re.fullmatch(re.escape(stem) + "/ns/([^/]+)/sa/[^/]+", identity)
    return found[1] if found else None


def _is_of(group: CallerEntry, kinds: dict[str, CallerEntry], identity: object, name: object) -> bool:
    if group.kind == "namespace":
        return isinstance(identity, str) and _account(identity, kinds) == group.name
    return isinstance(name, str) and name.endswith(group.name[1:]) and not name.startswith("spiffe://")


def _destination(destinations: tuple[EffectiveDestination, ...], request: Request) -> EffectiveDestination:
    port = request.values.get(PORT)
    if len(destinations) == 1 and not destinations[0].ports:
        return destinations[0]
    return next((one for one in destinations if port in one.ports), None) or next(d for d in destinations if d.others)


def _message(messages: tuple[EffectiveMessage, ...], request: Request) -> EffectiveMessage:
    if messages[0].any:
        return messages[0]
    method, tool = request.values.get(MCP_METHOD), request.values.get(MCP_TOOL)
    known = {(one.method, one.tool): one for one in messages}
    prefixes = [one.method for one in messages if one.method and one.method.endswith("/*")]
    named = [method, *(p for p in prefixes if isinstance(method, str) and method.startswith(p[:-1])), "*"]
    if method is None:
        return known[None, None]
    for one in named:
        for wanted in (tool, "*", None):
            if (one, wanted) in known:
                return known[str(one), wanted if wanted is None else str(wanted)]
    raise AssertionError(method)
