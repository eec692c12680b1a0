"""Callers, ports, messages and rules of tables as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eastgate.ir import (
    AccountsOf,
    And,
    Is,
    Not,
    OneOf,
    Or,
    Predicate,
    Present,
    Suffix,
    conjuncts,
    mentions,
)
from eastgate.ir.attributes import IDENTITY, MESH_NAME, PORT, TRANSPORT
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.callers import CallerCell, CallerKind
from eastgate.ir.symbolic.simplify import both
from eastgate.reach.callers import CallerEntry, entry_of
from eastgate.reach.requests import EffectiveMessage
from eastgate.reports.conditions import condition_text
from eastgate.reports.connections import is_list, values_text
from eastgate.settings import Settings

__all__ = ["ANYONE", "ANY_IDENTITY", "callers_text", "condition_text", "messages_text", "ports_text", "rule_text"]

ANYONE = "anyone"
ANY_IDENTITY = "any identity"
_OTHERS = {
    CallerKind.OTHER_ACCOUNT: "any other service account",
    CallerKind.OTHER_SPIFFE: "any other SPIFFE ID",
    CallerKind.OTHER_NAME: "any other DNS name",
}


def rule_text(predicate: Predicate, settings: Settings) -> str:
    """Render the requirements of a rule: the callers, the ports, and the rest."""
    if TRANSPORT in mentions(predicate):  # a network rule: its ports include the transport
        return condition_text(predicate, most=None)
    callers = CallerCells(settings)
    texts: list[str] = []
    rest: list[Predicate] = []
    for part in conjuncts(both(conjuncts(predicate))):
        names = _names(part, callers)
        if names is not None:
            texts.append("from " + (", ".join(names) or "has_anonymous"))
        elif is_list(part, PORT):
            texts.append(f"port {values_text(part) or 'none'}")
        else:
            rest.append(part)
    if rest:
        texts.append(condition_text(both(rest), most=None))
    return "; ".join(texts) or "anything"


def _names(part: Predicate, callers: CallerCells) -> list[str] | None:
    """Return the callers that a predicate names, or None if it has other requirements."""
    match part:
        case Is(attribute, OneOf() | AccountsOf()) if attribute in (IDENTITY, MESH_NAME):
            return _cell_names(callers.named_by(part), callers)
        case And((Is(attribute, Suffix()) as atom, Not(Is()))) if attribute == MESH_NAME:
            return _cell_names(callers.named_by(atom), callers)
        case And((Is(attribute, Present()), Not(Is()))) if attribute == MESH_NAME:
            return ["any name of the mesh"]
        case Or(parts) if parts:
            names = [_names(option, callers) for option in parts]
            return (
                None if any(option is None for option in names) else [name for option in names for name in option or ()]
            )
        case _:
            return None


def _cell_names(cells: Iterable[CallerCell], callers: CallerCells) -> list[str]:
    return [
        _caller(entry, ()) for entry in sorted((entry_of(c, callers) for c in cells), key=lambda entry: entry.order)
    ]


def callers_text(
    callers: Sequence[CallerEntry], all_entries: Sequence[CallerEntry], *, by_namespace: bool = False
) -> list[str]:
    """Render the callers of one row, each as one entry; `all_entries` are the callers of the whole table.

    `by_namespace`: one entry for all accounts of a namespace.
    """
    chosen = set(callers)
    if len(chosen) == len(all_entries):
        return [ANYONE]
    if chosen == {entry for entry in all_entries if entry.kind != CallerKind.NONE}:
        return [ANY_IDENTITY]
    others = [entry for entry in all_entries if entry.kind in _OTHERS]
    whole = [entry for entry in callers if by_namespace and _accounts_in(entry, all_entries) <= chosen]
    covered = frozenset[CallerEntry]().union(*(_accounts_in(entry, all_entries) for entry in whole))
    texts = [
        _caller(entry, () if entry in whole else all_entries)
        for entry in callers
        if entry.kind not in _OTHERS and entry.kind != CallerKind.NONE and entry not in covered
    ]
    mine = [entry for entry in callers if entry.kind in _OTHERS]
    has_anonymous = any(entry.kind == CallerKind.NONE for entry in callers)
    if mine and len(mine) == len(others):
        texts.append("anyone else" if has_anonymous and not texts else "any other identity")
        has_anonymous = has_anonymous and texts[-1] != "anyone else"
    elif {entry.kind for entry in mine} == {CallerKind.OTHER_ACCOUNT, CallerKind.OTHER_NAME}:
        texts.append("any other name of the mesh")
    else:
        texts += [_caller(entry, all_entries) for entry in mine]
    return [*texts, "no identity"] if has_anonymous else texts


def _accounts_in(caller: CallerEntry, all_entries: Sequence[CallerEntry]) -> frozenset[CallerEntry]:
    """Return the accounts of a namespace that have entries of their own; none if the caller is not a namespace."""
    stem = f"{caller.name}/"
    return frozenset(
        entry
        for entry in all_entries
        if caller.kind == CallerKind.NAMESPACE
        and entry.kind == CallerKind.SERVICE_ACCOUNT
        and entry.name.startswith(stem)
    )


def _caller(caller: CallerEntry, all_entries: Sequence[CallerEntry]) -> str:
    match caller.kind:
        case CallerKind.SERVICE_ACCOUNT:
            return f"sa:{caller.name}"
        case CallerKind.NAME:
            return f"id:{caller.name}"
        case CallerKind.NAMESPACE:
            return f"sa:{caller.name}/*" + (" (others)" if _accounts_in(caller, all_entries) else "")
        case CallerKind.SPIFFE | CallerKind.SUFFIX:
            return caller.name
        case CallerKind.OTHER_ACCOUNT | CallerKind.OTHER_SPIFFE | CallerKind.OTHER_NAME:
            return _OTHERS[caller.kind]
        case CallerKind.NONE:
            return "no identity"


def messages_text(messages: Sequence[EffectiveMessage], *, alone: bool) -> str:
    """Render the MCP messages of one row; `alone`: it is the only row, and covers all messages."""
    if alone:
        return "any"
    tools = [str(message.tool) for message in messages if message.method == "tools/call" and message.tool != "*"]
    others = [str(message) for message in messages if message.method != "tools/call" or message.tool == "*"]
    return ", ".join([*([f"tool{'s' if len(tools) > 1 else ''} {', '.join(tools)}"] if tools else []), *others])


def ports_text(ports: Iterable[int], *, others: bool, alone: bool) -> str:
    """Render the ports of one row as ranges; `alone`: it is the only row, and covers all ports."""
    if others:
        return "any" if alone else "any other"
    return ", ".join(_ranges(sorted(ports)))


def _ranges(ports: Sequence[int]) -> list[str]:
    texts: list[str] = []
    start = 0
    for index in range(1, len(ports) + 1):
        if index == len(ports) or ports[index] != ports[index - 1] + 1:
            first, last = ports[start], ports[index - 1]
            texts += [f"{first}-{last}"] if last - first > 1 else map(str, range(first, last + 1))
            start = index
    return texts
