"""The condition `Programmed` of policies that an installed mesh enforces, by policies that were written for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from eastgate.basics.records import dataclass
from eastgate.controller.conditions import StatusCondition
from eastgate.controller.status.notices import Notice, NoticeReason
from eastgate.controller.status.programmed import (
    NOT_ENFORCED,
    PARTIALLY_PROGRAMMED,
    PROGRAMMED,
    RECONCILING,
    join_names,
)
from eastgate.convert.native import NativeMesh, NativeOutcome, NativeState, WriteFailure
from eastgate.ir import PolicyRef

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NativeEvidence:
    """What speaks for it that a mesh enforces what is written for a policy.

    `not_serving` names a control plane that has no ready endpoint; None: it has one. `total` are the pods that the
    policy targets, and `unguarded` those of them without a proxy of the mesh.
    """

    not_serving: str | None
    total: int
    unguarded: tuple[str, ...] = ()

    def missing(self, name: str) -> Iterator[str]:
        """Yield what is missing, for a sentence."""
        if self.not_serving is not None:
            yield f"no control plane of {name} serves it: {self.not_serving} has no ready endpoint"
        if self.unguarded:
            yield f"{len(self.unguarded)} without a proxy of {name}: {join_names(self.unguarded)}"


def natively_programmed(
    mesh: NativeMesh, outcome: NativeOutcome, evidence: NativeEvidence, *, audit: bool
) -> StatusCondition:
    """Return the condition: True only where the mesh is there to enforce, and answers everything as the policy says."""
    name = mesh.value.capitalize()
    losses = "; ".join(loss.message for loss in outcome.losses)
    missing = "".join(f"; {each}" for each in evidence.missing(name))
    match outcome.state:
        case NativeState.WRITTEN:
            how = f"written for {name}: {join_names(outcome.objects)}"
        case NativeState.COVERED:
            how = f"{name} answers as it says, by what is written for others, though it cannot be written: {losses}"
        case NativeState.CLOSED:
            also = f"; nor these, which it does not target: {join_names(outcome.also_closed)}"
            message = f"nobody reaches what it targets, since it cannot be written for {name}: {losses}"
            message += f"{also if outcome.also_closed else ''}{missing}"
            return StatusCondition.false("Programmed", NOT_ENFORCED, message)
        case NativeState.NOT_WRITTEN:
            message = f"nobody enforces it, since it cannot be written for {name}: {losses}"
            return StatusCondition.false("Programmed", NOT_ENFORCED, message)
    if outcome.differences:
        message = f"{how}; {'; '.join(_differences(name, outcome))}{missing}"
        return StatusCondition.false("Programmed", PARTIALLY_PROGRAMMED, message)
    guarded = evidence.total - len(evidence.unguarded)
    if evidence.total == 0:
        message = f"{how}; it selects nothing that runs now{missing}"
        return StatusCondition.unknown("Programmed", RECONCILING, message)
    if missing and (guarded == 0 or evidence.not_serving is not None):
        return StatusCondition.false("Programmed", NOT_ENFORCED, f"nobody is known to enforce it; {how}{missing}")
    if missing:
        message = f"in force at {guarded} of {evidence.total}; {how}{missing}"
        return StatusCondition.false("Programmed", PARTIALLY_PROGRAMMED, message)
    observed = "; observed only: it is reported and decides nothing" if audit else ""
    return StatusCondition.true("Programmed", PROGRAMMED, f"{how}{observed}")


def not_written_yet(mesh: NativeMesh) -> StatusCondition:
    """Return the condition of a generation that was not written, or of which the API server refused something."""
    message = f"it is not written for {mesh.value.capitalize()} yet"
    return StatusCondition.false("Programmed", RECONCILING, message)


def without_failures(policies: Mapping[PolicyRef, T], failures: Iterable[WriteFailure]) -> dict[PolicyRef, T]:
    """Return the policies that were written: in a namespace with a failure none may have been.

    What a policy of the whole cluster became may be in any namespace.
    """
    failed = {failure.step.namespace for failure in failures}
    return {ref: each for ref, each in policies.items() if not failed or ref.namespace not in (None, *failed)}


def native_notices(mesh: NativeMesh, outcome: NativeOutcome, evidence: NativeEvidence) -> Iterator[Notice]:
    """Yield what a person must see: what cannot be written, what the mesh allows all the same, and what it misses."""
    name = mesh.value.capitalize()
    if outcome.losses and outcome.state is not NativeState.COVERED:
        losses = "; ".join(f"{loss.code.id}: {loss.message}" for loss in outcome.losses)
        yield Notice(NoticeReason.NOT_CONVERTED, f"it cannot be written for {name}: {losses}", losses)
    if any(difference.allowed for difference in outcome.differences):
        yield Notice(NoticeReason.NOT_ENFORCED, "; ".join(_differences(name, outcome)))
    if outcome.also_closed:
        closed = f"{name} cannot select its pods alone; closed with them: {join_names(outcome.also_closed)}"
        yield Notice(NoticeReason.NOT_CONVERTED, closed, "closed")
    missing = "; ".join(evidence.missing(name))
    if missing and evidence.total and outcome.state is not NativeState.NOT_WRITTEN:
        yield Notice(NoticeReason.NOT_ENFORCED, missing, name)


def _differences(name: str, outcome: NativeOutcome) -> Iterator[str]:
    for allowed, phrase in ((True, "allows more than it"), (False, "denies more than it")):
        destinations = {
            destination
            for difference in outcome.differences
            if difference.allowed is allowed
            for destination in difference.destinations
        }
        if destinations:
            yield f"{name} {phrase} at {join_names(destinations)}"
