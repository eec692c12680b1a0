"""Texts of refusals: the request that a change must not allow or deny, and the field of the deciding rule."""

from __future__ import annotations

from eastgate.basics.diagnostics.printable import printable
from eastgate.reports.invariants.model import Quantifier
from eastgate.reports.invariants.objects import Counterexample, InvariantObject

_BROKEN = {
    Quantifier.NEVER: "a request that must never be allowed would be allowed",
    Quantifier.ALWAYS: "a request that must always be allowed would be denied",
    Quantifier.ONLY: "another caller's request would be allowed",
}


def refusal_of(invariant: InvariantObject, example: Counterexample) -> str:
    """Return the Invariant that a change breaks, the request, and its decider, as text."""
    cites = f" ({invariant.statement.cites})" if invariant.statement.cites is not None else ""
    field = f" at {example.field}" if example.field is not None else ""
    imagined = "; that workload does not exist yet" if example.imagined is not None else ""
    if example.caller is not None or example.account is not None:
        imagined += "; that caller does not exist yet"
    broken = _BROKEN[invariant.statement.mode]
    return printable(f"breaks {invariant.ref}{cites}: {broken}: {example.question}: {example.reason}{field}{imagined}")


def unproven_of(invariant: InvariantObject, why: str) -> str:
    """Return a text that names an Invariant that refuses a change because it is not proven."""
    return printable(f"{invariant.ref} refuses what is not proven: {why}")


def overloaded_of(invariant: InvariantObject) -> str:
    """Return a text that names an Invariant that a change may break, since there was no time to judge it."""
    return printable(f"overloaded: there was no time to find out whether this breaks {invariant.ref}; try again")
