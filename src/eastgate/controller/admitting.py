"""What webhooks ask of a replica: is a change fine beside everything else, and how does a pod get its sidecar."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Final

from eastgate.admission.changes import (
    AdmissionJudgement,
    AdmissionRefusal,
    ChangeOperation,
    Mutation,
    RequestedChange,
)
from eastgate.admission.semantic import Judge, ObjectChange
from eastgate.injection import InjectionOptions, InjectionRefused, inject, is_wanted, json_patch, warnings_of
from eastgate.injection.names import INJECTION

__all__ = ["judge_change", "mutate_pod"]

_ASKED: Final[Mapping[str, str]] = MappingProxyType({INJECTION: "enabled"})


async def judge_change(judge: Judge, own_user: str, change: RequestedChange) -> AdmissionJudgement:
    """Say what a change opens and closes, and which Invariants it breaks.

    What we write ourselves follows from policies that were judged when they were stored, and is proven before.
    """
    if change.user == own_user:
        return AdmissionJudgement()
    removed = change.operation is ChangeOperation.DELETE
    document = change.old if removed else change.new
    if document is None:
        return AdmissionJudgement()
    judged = await judge.judge_in_thread(ObjectChange.of(document, removed=removed))
    return AdmissionJudgement(tuple(AdmissionRefusal(text) for text in judged.refusals), judged.warnings)


async def mutate_pod(options: InjectionOptions, change: RequestedChange) -> Mutation:
    """Give a new pod its sidecar, unless it says itself that it wants none.

    The API server asks only where the namespace or the pod wants one. What this replica knows of the namespace may be
    older, and would leave a pod without.
    """
    if change.new is None or change.kind != "Pod" or change.operation is not ChangeOperation.CREATE:
        return Mutation()
    pod = deepcopy(dict(change.new))
    try:
        injected = inject(pod, options) if is_wanted(pod, _ASKED) else None
        warnings = AdmissionJudgement(warnings=warnings_of(pod))
    except InjectionRefused as error:
        return Mutation(judgement=AdmissionJudgement((AdmissionRefusal(str(error)),)))
    return Mutation(tuple(json_patch(pod, injected)) if injected is not None else (), warnings)
