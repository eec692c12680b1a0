"""Conditions in the words that people use: `POST /v1/charges`, not `method is POST and path is /v1/charges`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eastgate.ir import (
    AccountsOf,
    And,
    Computed,
    InNetwork,
    Is,
    Not,
    OneOf,
    Or,
    Predicate,
    Prefix,
    Present,
    Suffix,
    conjuncts,
    mentions,
)
from eastgate.ir.attributes import APPLICATION, HOST, IDENTITY, MESH_NAME, METHOD, PATH, PORT
from eastgate.reach.callers import CallerEntry, CallerKind, entry_of
from eastgate.reach.requests import EffectiveMessage
from eastgate.settings import Settings
from eastgate.symbolic.callers import CallerCell, CallerCells
from eastgate.symbolic.simplify import both

__all__ = ["callers_text", "condition_text", "messages_text", "ports_text", "rule_text"]

_HTTP = Is(APPLICATION, OneOf(frozenset({"http"})))
_BYTES = Is(APPLICATION, OneOf(frozenset({"bytes"})))

_OTHERS = {
    CallerKind.OTHER_ACCOUNT: "any other service account",
    CallerKind.OTHER_SPIFFE: "any other SPIFFE ID",
    CallerKind.OTHER_NAME: "any other DNS name",
}


def condition_text(predicate: Predicate) -> str:
    """Render a condition, for a line of a table."""
    if isinstance(predicate, Or) and not _is_path(predicate):
        return " or ".join(condition_text(part) for part in predicate.parts) or "never"
    parts = conjuncts(predicate)
    if any(attribute.needs_http for part in parts for attribute in mentions(part)):
        parts = [part for part in parts if part != _HTTP]  # what else it asks for says so
    method = next((part for part in parts if _is_list(part, METHOD)), None)
    path = next((part for part in parts if _is_path(part)), None)
    texts = [_part_text(part) for part in parts if part is not method and part is not path]
    line = [_values(part) for part in (method, path) if part is not None]
    if line:
        texts.insert(0, " ".join(line))
    return " and ".join(texts) or "anything"


def _is_list(part: Predicate, attribute: object) -> bool:
    return isinstance(part, Is) and part.attribute == attribute and isinstance(part.matcher, OneOf)


def _is_path(part: Predicate) -> bool:
    if isinstance(part, Or):
        return bool(part.parts) and all(_is_path(option) for option in part.parts)
    if not isinstance(part, Is) or part.attribute.name != PATH.name:
        return False
    return isinstance(part.matcher, OneOf | Prefix | Suffix)


def _values(part: Predicate) -> str:
    if isinstance(part, Or):
        return ", ".join(_values(option) for option in part.parts)
    assert isinstance(part, Is)  # noqa: S101 - callers have checked it
    if isinstance(part.matcher, OneOf):
        return ",".join(sorted(map(str, part.matcher.values)))
    return str(part.matcher)


def _part_text(part: Predicate) -> str:
    if mentions(part) == {APPLICATION}:
        return "HTTP" if part in (_HTTP, Not(_BYTES)) else "no HTTP"
    match part:
        case Or():
            return f"({condition_text(part)})"
        case Not(Is(attribute, Present())):
            return "no HTTP" if attribute == METHOD else f"no {attribute}"
        case Not(And() | Or() as inner):
            return f"not ({condition_text(inner)})"
        case Not(inner):
            return f"not {condition_text(inner)}"
        case Is(attribute, OneOf()) if attribute.name == "answer":
            return f"{attribute.key} allows"
        case Is(attribute, OneOf()) if attribute in (HOST, PORT):
            return f"{attribute} {_values(part)}"
        case Is(attribute, Prefix() | Suffix() as matcher) if attribute == HOST:
            return f"{attribute} {matcher}"
        case Is(attribute, InNetwork(networks)):
            return f"{attribute} in {', '.join(map(str, networks))}"
        case Is(attribute, Present()):
            return f"any {attribute}"
        case Is() | And() | Computed():
            return str(part)


def rule_text(predicate: Predicate, settings: Settings) -> str:
    """Render what a rule asks for: the callers, the ports, and the rest."""
    callers = CallerCells(settings)
    texts: list[str] = []
    rest: list[Predicate] = []
    for part in conjuncts(both(conjuncts(predicate))):
        names = _names(part, callers)
        if names is not None:
            texts.append("from " + (", ".join(names) or "nobody"))
        elif _is_list(part, PORT):
            texts.append(f"port {_values(part) or 'none'}")
        else:
            rest.append(part)
    if rest:
        texts.append(condition_text(both(rest)))
    return "; ".join(texts) or "anything"


def _names(part: Predicate, callers: CallerCells) -> list[str] | None:
    """Return the callers that a predicate names, if that is all that it says."""
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


def callers_text(callers: Sequence[CallerEntry], everybody: Sequence[CallerEntry]) -> list[str]:
    """Render the callers of one row, each as one entry; `everybody` are those of the whole table."""
    chosen = set(callers)
    if len(chosen) == len(everybody):
        return ["anyone"]
    if chosen == {entry for entry in everybody if entry.kind != CallerKind.NONE}:
        return ["any identity"]
    others = [entry for entry in everybody if entry.kind in _OTHERS]
    texts = [
        _caller(entry, everybody) for entry in callers if entry.kind not in _OTHERS and entry.kind != CallerKind.NONE
    ]
    mine = [entry for entry in callers if entry.kind in _OTHERS]
    nobody = any(entry.kind == CallerKind.NONE for entry in callers)
    if mine and len(mine) == len(others):
        texts.append("anyone else" if nobody and not texts else "any other identity")
        nobody = nobody and texts[-1] != "anyone else"
    elif {entry.kind for entry in mine} == {CallerKind.OTHER_ACCOUNT, CallerKind.OTHER_NAME}:
        texts.append("any other name of the mesh")
    else:
        texts += [_caller(entry, everybody) for entry in mine]
    return [*texts, "no identity"] if nobody else texts


def _caller(caller: CallerEntry, everybody: Sequence[CallerEntry]) -> str:
    match caller.kind:
        case CallerKind.SERVICE_ACCOUNT:
            return f"sa:{caller.name}"
        case CallerKind.NAME:
            return f"id:{caller.name}"
        case CallerKind.NAMESPACE:
            stem = f"{caller.name}/"
            has_accounts = any(
                entry.kind == CallerKind.SERVICE_ACCOUNT and entry.name.startswith(stem) for entry in everybody
            )
            return f"sa:{caller.name}/*" + (" (others)" if has_accounts else "")
        case CallerKind.SPIFFE | CallerKind.SUFFIX:
            return caller.name
        case CallerKind.OTHER_ACCOUNT | CallerKind.OTHER_SPIFFE | CallerKind.OTHER_NAME:
            return _OTHERS[caller.kind]
        case CallerKind.NONE:
            return "no identity"


def messages_text(messages: Sequence[EffectiveMessage], *, alone: bool) -> str:
    """Render the MCP messages of one row; `alone`: there is no other row, so that it is for all of them."""
    if alone:
        return "any"
    tools = [str(message.tool) for message in messages if message.method == "tools/call" and message.tool != "*"]
    others = [str(message) for message in messages if message.method != "tools/call" or message.tool == "*"]
    return ", ".join([*([f"tool{'s' if len(tools) > 1 else ''} {', '.join(tools)}"] if tools else []), *others])


def ports_text(ports: Iterable[int], *, others: bool, alone: bool) -> str:
    """Render the ports of one row as ranges; `alone`: there is no other row, so that it is for all of them."""
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
