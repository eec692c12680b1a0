"""What webhooks ask of a replica: is a change fine beside everything else, and how does a pod get its sidecar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from eastgate.admission.changes import (
    AdmissionJudgement,
    AdmissionRefusal,
    ChangeOperation,
    Mutation,
    RequestedChange,
)
from eastgate.admission.semantic import Judge, ObjectChange
from eastgate.cluster import World
from eastgate.injection import InjectionOptions, InjectionRefused, inject, is_wanted, json_patch, warnings_of

__all__ = ["judge_change", "mutate_pod"]


async def judge_change(judge: Judge, change: RequestedChange) -> AdmissionJudgement:
    """Say what a change opens and closes, and which Invariants it breaks."""
    removed = change.operation is ChangeOperation.DELETE
    document = change.old if removed else change.new
    if document is None:
        return AdmissionJudgement()
    judged = await judge.judge_in_thread(ObjectChange.of(document, removed=removed))
    return AdmissionJudgement(tuple(AdmissionRefusal(text) for text in judged.refusals), judged.warnings)


async def mutate_pod(world: Callable[[], World], options: InjectionOptions, change: RequestedChange) -> Mutation:
    """Give a new pod its sidecar, where its namespace or the pod itself asks for one."""
    pod = change.new
    if pod is None or change.kind != "Pod" or change.operation is not ChangeOperation.CREATE:
        return Mutation()
    namespace = world().namespaces.get(change.namespace or "")
    if not is_wanted(_plain(pod), namespace.labels if namespace is not None else {}):
        return Mutation()
    try:
        injected = inject(_plain(pod), options)
    except InjectionRefused as error:
        return Mutation(judgement=AdmissionJudgement((AdmissionRefusal(str(error)),)))
    warnings = AdmissionJudgement(warnings=tuple(warnings_of(_plain(pod))))
    patch = json_patch(_plain(pod), injected) if injected is not None else []
    return Mutation(tuple(patch), warnings)


def _plain(pod: Mapping[str, Any]) -> dict[str, Any]:
    return deepcopy(dict(pod))
