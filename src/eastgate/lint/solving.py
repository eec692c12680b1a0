"""Requests that meet a predicate and avoid others: what makes “can never match” exact.

The search for completions answers every question here: a chain in which the predicates to avoid accept, and then the
wanted one denies, is denied exactly by the requests that are looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eastgate.engine.completions import complete
from eastgate.engine.partial import truth
from eastgate.policy import (
    AccountsOf,
    And,
    Chain,
    Effect,
    FirstMatch,
    InNetwork,
    Is,
    Known,
    Layer,
    Matcher,
    Not,
    OneOf,
    Or,
    Origin,
    Placement,
    Predicate,
    Prefix,
    Present,
    Request,
    Rule,
    Step,
    Suffix,
)
from eastgate.policy.attributes import ADDRESS, MCP_METHOD, METHOD, PATH, PORT, Attribute
from eastgate.policy.paths import is_refused

__all__ = ["GaveUp", "complete_with_others", "is_possible", "witness"]

_NOWHERE = Origin(None, 0)
_STRANGER = "stranger"  # no policy of anybody names it, since it is no identity, no path and no host
_SOMEWHERE = "203.0.113.7"

# A request without a body carries no JSON-RPC message.
_BODILESS = And((Is(METHOD, OneOf(frozenset({"GET", "HEAD", "DELETE", "OPTIONS"}))), Is(MCP_METHOD, Present())))


class GaveUp(Exception):  # noqa: N818 - it is not an error, it is a third answer
    """Too many cases to look at; nothing can be said."""


def witness(wanted: Predicate, avoided: Sequence[Predicate] = ()) -> Request | None:
    """A request that meets a predicate and none of the others; None where there is none. Raises GaveUp."""
    if not avoided:
        quick = _quick(wanted)
        if quick is not None:
            return quick
    steps = [Step(Rule(predicate, _NOWHERE), Effect.ACCEPT) for predicate in avoided]
    steps.append(Step(Rule(wanted, _NOWHERE), Effect.DENY))
    layer = Layer(Placement(None, "lint"), Chain((FirstMatch("lint", tuple(steps), Effect.ACCEPT),)))
    found = complete(layer, Request({}))
    if found.exhausted:
        raise GaveUp
    return None if found.outcome.allowed else found.of(Request({}))


def is_possible(wanted: Predicate) -> bool:
    """Whether any request meets a predicate. What nobody could find out counts as possible."""
    try:
        return witness(wanted, (_BODILESS,) if _mentions_both(wanted) else ()) is not None
    except GaveUp:
        return True


def _mentions_both(predicate: Predicate) -> bool:
    text = str(predicate)
    return str(METHOD) in text and str(MCP_METHOD) in text


def complete_with_others(values: Mapping[Attribute, Known], looked_at: Iterable[Attribute], port: int) -> Request:
    """A request with these values, and with such others as policies mention least."""
    others: dict[Attribute, Known] = dict.fromkeys(looked_at)
    if PORT in others:
        others[PORT] = port
    if ADDRESS in others:
        others[ADDRESS] = _SOMEWHERE
    return Request({**others, **values})


# Most rules are lists that must all be met: the first entry of each is a request


def _quick(wanted: Predicate) -> Request | None:
    values: dict[Attribute, Known] = {}
    if not _pick(wanted, values):
        return None
    request = Request(values)
    return request if not request.refused_path and truth(wanted, request) is True else None


def _pick(predicate: Predicate, values: dict[Attribute, Known]) -> bool:
    match predicate:
        case Is(attribute, matcher):
            value = _value(attribute, matcher)
            if value is None or values.get(attribute, value) != value:
                return False
            values[attribute] = value
            return True
        case And(parts):
            return all(_pick(part, values) for part in parts)
        case Or(parts):
            return bool(parts) and _pick(parts[0], values)
        case Not(Is()):
            return True  # seen to in the end
        case _:
            return False


def _value(attribute: Attribute, matcher: Matcher) -> Known:
    match matcher:
        case OneOf(values):
            found: Known = min(values, key=str, default=None)
        case Prefix(text):
            found = f"{text}{_STRANGER}"
        case Suffix(text):
            found = f"{_STRANGER}{text}"
        case AccountsOf():
            found = f"{matcher.prefix}{_STRANGER}"
        case InNetwork(networks):
            found = str(networks[0].network_address) if networks else None
        case Present():
            found = _STRANGER
    return None if attribute == PATH and isinstance(found, str) and is_refused(found) else found
