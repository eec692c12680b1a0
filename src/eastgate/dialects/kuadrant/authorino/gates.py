"""Conditions that guard a step of a scheme, or the scheme as a whole: its `when`."""

from __future__ import annotations

import enum
from typing import Protocol

from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects.kuadrant.authorino.conditions import ConditionResult, evaluate_condition
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.model import All, CelPredicate, Condition
from eastgate.dialects.kuadrant.authorino.outcomes import ERRS, FAILS, HOLDS


class Gate(enum.Enum):
    """The effect of a `when` on what it guards."""

    OPEN = enum.auto()
    CLOSED = enum.auto()
    MAYBE = enum.auto()
    """Open or closed: unknown."""
    ERROR = enum.auto()
    UNSURE = enum.auto()
    """Open, closed or an error: unknown."""


class Guarded(Protocol):
    """The attributes that steps of all kinds share."""

    @property
    def name(self) -> str:
        pass

    @property
    def priority(self) -> int:
        """Return the priority; lower numbers come first."""

    @property
    def when(self) -> Condition | None:
        """Return the condition that guards it."""

    @property
    def span(self) -> Span | None:
        """Return its span in the manifest."""


def _is_at_gateway(when: Condition) -> bool:
    """Return whether the filter of a gateway evaluates a condition: there an error refuses the request."""
    return isinstance(when, All) and any(isinstance(part, CelPredicate) and part.at_gateway for part in when.parts)


def gate_of(when: Condition | None, evaluation: Evaluation) -> tuple[Gate, ConditionResult | None]:
    """Return whether the guarded step takes place, and the result of its condition."""
    if when is None:
        return Gate.OPEN, None
    result = evaluate_condition(when, evaluation.document)
    outcomes = result.outcomes
    if evaluation.services.authorino_compat and ERRS in outcomes and not _is_at_gateway(when):
        outcomes = (outcomes & ~ERRS) | FAILS
    if outcomes == HOLDS:
        return Gate.OPEN, result
    if outcomes == FAILS:
        return Gate.CLOSED, result
    if outcomes == ERRS:
        return Gate.ERROR, result
    return (Gate.UNSURE if ERRS in outcomes else Gate.MAYBE), result
