"""Search for the entries of a decision list that some completion of a request reaches.

A request reaches an entry if it meets the entry and none before it. In most cases, the simplest request that meets an
entry shows that it is reachable, or one earlier entry shows that it is not. Only other cases need a search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from eastgate.basics.records import dataclass
from eastgate.ir import ALWAYS, NEVER, Computed, Is, Known, OneOf, Predicate, Request, conjuncts, mentions, rewrite
from eastgate.ir.attributes import Attribute
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.ir.symbolic.trees import Entry, truth
from eastgate.ir.symbolic.witnesses import GaveUp, pick_values, witness

L = TypeVar("L")


@dataclass(slots=True)
class Effort:
    """A budget: the number of pairs of entries that may still be compared."""

    left: int = 100_000


def reachable(entries: Sequence[Entry[L]], request: Request, effort: Effort) -> list[L]:
    """Return the ends that some completion of a request reaches, in order.

    Regular expressions on unknown attributes count as independent of everything else. If the budget is used up, the
    result contains each entry that is not excluded alone. So it may contain too many ends, but never too few.
    """
    asked = list(_possible(entries, request))
    absent: dict[Attribute, Known] = {attribute: None for entry in asked for attribute in mentions(entry.when)}
    reached: list[L] = []
    before: list[Predicate] = []
    for when, end in asked:
        effort.left -= len(before)
        if effort.left < 0:
            return [end for _, end in asked]
        if when != NEVER and _is_reached(when, before, absent):
            reached.append(end)
        before.append(when)
    return reached


def _possible(entries: Sequence[Entry[L]], request: Request) -> Iterator[Entry[L]]:
    """Yield the residual of each entry that may hold, up to an entry that certainly holds."""
    facts = Facts(request.values)
    for entry in entries:
        held = truth(entry.when, request)
        if held is None:
            yield Entry(residual(entry.when, facts), entry.end)
        elif held:
            yield Entry(ALWAYS, entry.end)
            return


def _is_reached(wanted: Predicate, before: Sequence[Predicate], absent: Mapping[Attribute, Known]) -> bool:
    if not before or _is_plainly_reached(wanted, before, absent):
        return True
    implied = _exact_values(wanted)
    avoided = [rest for predicate in before if (rest := _given(predicate, implied)) != NEVER]
    if ALWAYS in avoided:
        return False
    try:
        return not avoided or witness(wanted, avoided) is not None
    except GaveUp:
        return True


def _exact_values(wanted: Predicate) -> dict[Attribute, list[str | int]]:
    """Return the exact values that every request has that meets a predicate."""
    values: dict[Attribute, list[str | int]] = {}
    for part in conjuncts(wanted):
        match part:
            case Is(attribute, OneOf(only), joined=False) if len(only) == 1:
                values.setdefault(attribute, []).extend(only)
    return values


def _given(predicate: Predicate, values: dict[Attribute, list[str | int]]) -> Predicate:
    """Return the residual of a predicate for requests with these values, or a weaker predicate."""

    def settle(atom: Is | Computed) -> Predicate:
        attributes = (atom.attribute,) if isinstance(atom, Is) else tuple(atom.attributes)
        if len(attributes) != 1 or attributes[0] not in values or (isinstance(atom, Is) and atom.joined):
            return atom
        (attribute,) = attributes
        if any(_accepts(atom, attribute, value) for value in values[attribute]):
            return ALWAYS
        return atom if attribute.is_repeatable else NEVER

    return rewrite(predicate, settle)


def _accepts(atom: Is | Computed, attribute: Attribute, value: Known) -> bool:
    return atom.accepts(value) if isinstance(atom, Is) else atom.holds({attribute: value})


def _is_plainly_reached(wanted: Predicate, avoided: Sequence[Predicate], absent: Mapping[Attribute, Known]) -> bool:
    """Return whether the simplest request that meets a predicate meets none of the others."""
    values = pick_values(wanted)
    if values is None:
        return False
    request = Request({**absent, **values})
    if request.refused_path or not truth(wanted, request):
        return False
    return not any(truth(predicate, request) for predicate in avoided)
