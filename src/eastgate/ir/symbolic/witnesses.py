"""Witnesses: concrete requests that show a finding, or a proof that no such request exists.

The search for completions finds witnesses. It gets a chain that accepts each request that misses the wanted predicate
or meets one to avoid. Exactly the witnesses are denied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eastgate.ir import (
    AccountsOf,
    And,
    AnyAccount,
    Between,
    Chain,
    Effect,
    FirstMatch,
    InNetwork,
    Is,
    Known,
    Labelled,
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
from eastgate.ir.attributes import ADDRESSES, METHOD, PATH, PORT, Attribute
from eastgate.ir.paths import is_refused
from eastgate.ir.spiffe import service_account_id
from eastgate.ir.symbolic.completions import complete
from eastgate.ir.symbolic.trees import truth

_NO_ORIGIN = Origin(None, 0)
_UNUSED_TEXT = "stranger"  # no policy contains this text: it is no identity, path or host
_UNUSED_ADDRESS = "203.0.113.7"


class GaveUp(Exception):  # noqa: N818 - not an error: a third answer
    """The search has too many cases, and has no result."""


def witness(wanted: Predicate, avoided: Sequence[Predicate] = ()) -> Request | None:
    """Return a request that meets a predicate and none of the others, or None if there is none. Raises GaveUp."""
    if not avoided:
        quick = _simple_witness(wanted)
        if quick is not None:
            return quick
    met = Step(Rule(Or((Not(wanted), *avoided)), _NO_ORIGIN), Effect.ACCEPT)  # decided as soon as one part is decided
    return find_denied(Chain((FirstMatch("witness", (met,), Effect.DENY),)))


def find_denied(chain: Chain) -> Request | None:
    """Return a request that a chain denies, or None if there is none. Raises GaveUp."""
    completion = complete(Layer(Placement(None, "witness"), chain), Request({}))
    if completion.exhausted:
        raise GaveUp
    return None if completion.outcome.allowed else completion.of(Request({}))


def complete_with_others(values: Mapping[Attribute, Known], looked_at: Iterable[Attribute], port: int) -> Request:
    """Return a request with these values. The other attributes get the values that policies mention least."""
    others: dict[Attribute, Known] = dict.fromkeys(looked_at)
    if PORT in others:
        others[PORT] = port
    for address in ADDRESSES & others.keys():
        others[address] = _UNUSED_ADDRESS
    return Request({**others, **values})


# Most rules are lists that must all match: the first entry of each list gives a request


def _simple_witness(wanted: Predicate) -> Request | None:
    values = pick_values(wanted)
    request = Request(values) if values is not None else None
    return request if request is not None and not request.refused_path and truth(wanted, request) is True else None


def pick_values(wanted: Predicate) -> dict[Attribute, Known] | None:
    """Return values that may meet a predicate: the first entry of each list. None if another search is necessary."""
    values: dict[Attribute, Known] = {}
    return values if _pick(wanted, values) else None


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
            return True  # checked at the end
        case _:
            return False


def _value(attribute: Attribute, matcher: Matcher) -> Known:
    match matcher:
        case OneOf(values):
            value: Known = min(values, key=str, default=None)
        case Prefix(text):
            value = f"{text}{_UNUSED_TEXT}"
        case Suffix(text):
            value = f"{_UNUSED_TEXT}{text}"
        case AccountsOf():
            value = f"{matcher.prefix}{_UNUSED_TEXT}"
        case AnyAccount(domain):
            value = service_account_id(domain, _UNUSED_TEXT, _UNUSED_TEXT)
        case InNetwork(networks):
            value = str(networks[0].network_address) if networks else None
        case Present():
            value = _UNUSED_TEXT if attribute != METHOD else "GET"
        case Between(first):
            value = first
        case Labelled():
            value = None
    return None if attribute == PATH and isinstance(value, str) and is_refused(value) else value
