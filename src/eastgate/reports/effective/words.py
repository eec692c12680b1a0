"""Conditions in the words that people use: `POST /v1/charges`, not `method is POST and path is /v1/charges`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eastgate.ir import (
    AccountsOf,
    And,
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
)
from eastgate.ir.attributes import HOST, IDENTITY, MESH_NAME, METHOD, PATH, PORT, SENT_PATH
from eastgate.reports.effective.callers import CallerEntry, entry_of
from eastgate.reports.effective.requests import Message
from eastgate.settings import Settings
from eastgate.symbolic.callers import CallerCell, CallerCells
from eastgate.symbolic.simplify import both

__all__ = ["callers_text", "condition_text", "messages_text", "ports_text", "rule_text"]

_OTHERS = {
    "otherServiceAccount": "any other service account",
    "otherSpiffe": "any other SPIFFE ID",
    "otherName": "any other DNS name",
}


def condition_text(predicate: Predicate) -> str:
    """A condition, for a line of a table."""
    if isinstance(predicate, Or) and not _is_path(predicate):
        return " or ".join(condition_text(part) for part in predicate.parts) or "never"
    parts = conjuncts(predicate)
    method = next((one for one in parts if _is_list(one, METHOD)), None)
    path = next((one for one in parts if _is_path(one)), None)
    said = [_bracketed(part) for part in parts if part is not method and part is not path]
    line = [_values(one) for one in (method, path) if one is not None]
    if line:
        said.insert(0, " ".join(line))
    return " and ".join(said) or "anything"


def _is_list(part: Predicate, attribute: object) -> bool:
    return isinstance(part, Is) and part.attribute == attribute and isinstance(part.matcher, OneOf)


def _is_path(part: Predicate) -> bool:
    if isinstance(part, Or):
        return bool(part.parts) and all(_is_path(one) for one in part.parts)
    if not isinstance(part, Is) or part.attribute not in (PATH, SENT_PATH):
        return False
    return isinstance(part.matcher, OneOf | Prefix | Suffix)


def _values(part: Predicate) -> str:
    if isinstance(part, Or):
        return ", ".join(_values(one) for one in part.parts)
    assert isinstance(part, Is)  # noqa: S101 - who calls has looked
    if isinstance(part.matcher, OneOf):
        return ",".join(sorted(map(str, part.matcher.values)))
    return str(part.matcher)


def _bracketed(part: Predicate) -> str:
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
        case _:
            return str(part)


def rule_text(predicate: Predicate, settings: Settings) -> str:
    """What a rule asks, in words: from whom, to which port, and the rest."""
    callers = CallerCells(settings)
    said: list[str] = []
    rest: list[Predicate] = []
    for part in conjuncts(both(conjuncts(predicate))):
        names = _names(part, callers)
        if names is not None:
            said.append("from " + (", ".join(names) or "nobody"))
        elif _is_list(part, PORT):
            said.append(f"port {_values(part) or 'none'}")
        else:
            rest.append(part)
    if rest:
        said.append(condition_text(both(rest)))
    return "; ".join(said) or "anything"


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
    """Callers of one row, each as one entry; `everybody` are those of the whole table."""
    chosen = set(callers)
    if len(chosen) == len(everybody):
        return ["anyone"]
    if chosen == {one for one in everybody if one.kind != "none"}:
        return ["any identity"]
    others = [one for one in everybody if one.kind in _OTHERS]
    said = [_caller(one, everybody) for one in callers if one.kind not in _OTHERS and one.kind != "none"]
    mine = [one for one in callers if one.kind in _OTHERS]
    nobody = any(one.kind == "none" for one in callers)
    if mine and len(mine) == len(others):
        said.append("anyone else" if nobody and not said else "any other identity")
        nobody = nobody and said[-1] != "anyone else"
    elif {one.kind for one in mine} == {"otherServiceAccount", "otherName"}:
        said.append("any other name of the mesh")
    else:
        said += [_OTHERS[one.kind] for one in mine]
    return [*said, "no identity"] if nobody else said


def _caller(caller: CallerEntry, everybody: Sequence[CallerEntry]) -> str:
    match caller.kind:
        case "serviceAccount":
            return f"sa:{caller.name}"
        case "name":
            return f"id:{caller.name}"
        case "namespace":
            stem = f"{caller.name}/"
            named = any(one.kind == "serviceAccount" and one.name.startswith(stem) for one in everybody)
            return f"sa:{caller.name}/*" + (" (others)" if named else "")
        case _:
            return caller.name


def messages_text(messages: Sequence[Message], *, alone: bool) -> str:
    """MCP messages of one row; `alone`: there is no other row, so that it is for all of them."""
    if alone:
        return "any"
    tools = [str(one.tool) for one in messages if one.method == "tools/call" and one.tool != "*"]
    others = [str(one) for one in messages if one.method != "tools/call" or one.tool == "*"]
    return ", ".join([*([f"tool{'s' if len(tools) > 1 else ''} {', '.join(tools)}"] if tools else []), *others])


def ports_text(ports: Iterable[int], *, others: bool, alone: bool) -> str:
    """Ports of one row, in ranges; `alone`: there is no other row, so that it is for all of them."""
    if others:
        return "any" if alone else "any other"
    return ", ".join(_ranges(sorted(ports)))


def _ranges(ports: Sequence[int]) -> list[str]:
    said: list[str] = []
    start = 0
    for place in range(1, len(ports) + 1):
        if place == len(ports) or ports[place] != ports[place - 1] + 1:
            first, last = ports[start], ports[place - 1]
            said += [f"{first}-{last}"] if last - first > 1 else map(str, range(first, last + 1))
            start = place
    return said
