"""Three-valued truth: True, False, or None where the unknown attributes decide."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.ir import And, Computed, Is, Not, Or, Predicate, Request
from eastgate.ir.attributes import UNKNOWN


def truth(predicate: Predicate, request: Request) -> bool | None:
    """Return whether a predicate holds; None where that depends on what is unknown."""
    match predicate:
        case Is(attribute, matcher, joined):
            value = request.values.get(attribute, UNKNOWN)
            if isinstance(value, str) and not joined:
                return matcher.contains(value)
            if value is UNKNOWN or (joined and request.assumed.get(predicate) is not None):
                return request.assumed.get(predicate)
            return predicate.accepts(value)
        case Computed(attributes=attributes):
            if predicate in request.assumed:
                return request.assumed[predicate]
            return predicate.holds(request.values) if attributes <= request.values.keys() else None
        case Not(part):
            held = truth(part, request)
            return None if held is None else not held
        case And(parts):
            return _combine(parts, request, decisive=False)
        case Or(parts):
            return _combine(parts, request, decisive=True)


def _combine(parts: Iterable[Predicate], request: Request, *, decisive: bool) -> bool | None:
    """Combine three-valued parts by And (decisive False) or Or (decisive True)."""
    combined: bool | None = not decisive
    for part in parts:
        held = truth(part, request)
        if held is decisive:
            return decisive
        if held is None:
            combined = None
    return combined
