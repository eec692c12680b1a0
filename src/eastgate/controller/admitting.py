"""The work of a replica for its webhooks: it judges changes with the whole cluster, and injects sidecars."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Final

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import read_plain
from eastgate.authority.sources.sizes import PolicySizes, is_measured, size_of
from eastgate.cluster.proxies import ProxyPresence, proxy_presence
from eastgate.cluster.resources import UNWRITABLE
from eastgate.controller.admission.changes import (
    AdmissionJudgement,
    AdmissionRefusal,
    ChangeOperation,
    Mutation,
    RequestedChange,
)
from eastgate.controller.admission.semantic import ChangeJudgement, Judge, ObjectChange
from eastgate.controller.admission.semantic.words import line
from eastgate.controller.admission.turns import ReviewClient
from eastgate.controller.admission.validation import refusal_of
from eastgate.controller.injection import InjectionOptions, InjectionRefused, inject, is_wanted, json_patch, warnings_of
from eastgate.controller.injection.names import INJECTION
from eastgate.controller.status.natively import join_names
from eastgate.convert.native import ForeseenOutcome, NativeMesh, Unwritable
from eastgate.dialects import registered
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import JsonObject
from eastgate.reports.invariants.objects import GROUP
from eastgate.reports.invariants.shapes import KIND

_LOG = logging.getLogger(__name__)
_MAX_BYTES: Final = 64 * 1024  # of all Invariants of a namespace together
_INJECTED_NAMESPACE: Final[Mapping[str, str]] = MappingProxyType({INJECTION: "enabled"})


async def judge_change(
    judge: Judge,
    own_user: str,
    guarding: Authority | None,
    change: RequestedChange,
    on_unproven: Callable[[], None] = lambda: None,
) -> AdmissionJudgement:
    """Return the admission response to a change: its openings and closings, broken Invariants, and pods without
    enforcement.

    Changes by the controller itself are not judged: they follow from policies that were judged, and are proven before.
    `guarding` is the authority that Eastgate's own proxies enforce, or None if an installed mesh enforces. A change
    that is admitted without full proof is logged, and `on_unproven` is called.
    """
    judged = _judged(own_user, change)
    if judged is None:
        return AdmissionJudgement()
    judgement = await judge.judge_in_thread(judged, ReviewClient.of(change.peer, change.user))
    if judgement.allowed and not judgement.determined and not change.dry_run:
        fields = {**change.fields, "warnings": judgement.warnings}
        _LOG.warning("%s is admitted, but it is not proven what it opens", change, extra=fields)
        on_unproven()
    answer = _answer(judgement)
    if guarding is None or change.new is None or change.removes:
        return answer
    return AdmissionJudgement(warnings=unguarded_warnings(guarding, change.new)) | answer


def refuse_too_large(sizes: PolicySizes, own_user: str, change: RequestedChange) -> AdmissionJudgement:
    """Refuse a policy over the limit of its size, or of its namespace."""
    if change.user == own_user or change.new is None or not is_measured(change.api_version, change.kind):
        return AdmissionJudgement()
    problem = sizes.problem_with(ObjectChange.of(change.new).ref, change.new)
    return AdmissionJudgement((refusal_of(problem, None),)) if problem is not None else AdmissionJudgement()


def refuse_many_invariants(
    objects: Mapping[PolicyRef, JsonObject], own_user: str, change: RequestedChange
) -> AdmissionJudgement:
    """Refuse an Invariant over the limit of its namespace, since every judgement considers all Invariants.

    An Invariant that does not grow is never refused, so that existing ones can be corrected.
    """
    if change.user == own_user or change.new is None or (change.group, change.kind) != (GROUP, KIND):
        return AdmissionJudgement()
    size, ref = size_of(change.new), ObjectChange.of(change.new).ref
    if change.old is not None and size <= size_of(change.old):
        return AdmissionJudgement()
    beside = (
        size_of(obj)
        for other, obj in objects.items()
        if (other.group, other.kind, other.namespace) == (GROUP, KIND, ref.namespace) and other.name != ref.name
    )
    if size + sum(beside) <= _MAX_BYTES:
        return AdmissionJudgement()
    why = f"the Invariants of the namespace {ref.namespace} are too large together: at most {_MAX_BYTES:,} bytes"
    return AdmissionJudgement((AdmissionRefusal(f"{why} are allowed; use a ClusterInvariant, or select namespaces"),))


def refuse_unjudged(judge: Judge, own_user: str, change: RequestedChange) -> AdmissionJudgement:
    """Refuse a change that was not judged in time, if an Invariant is about it."""
    judged = _judged(own_user, change)
    return AdmissionJudgement() if judged is None else _answer(judge.refuse_unjudged(judged))


def _judged(own_user: str, change: RequestedChange) -> ObjectChange | None:
    document = change.old if change.removes else change.new
    if change.user == own_user or document is None:
        return None
    return ObjectChange.of(document, removed=change.removes, old=change.old)


def _answer(judged: ChangeJudgement) -> AdmissionJudgement:
    return AdmissionJudgement(tuple(AdmissionRefusal(text) for text in judged.refusals), judged.warnings)


def unguarded_warnings(authority: Authority, document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a warning with the pods that a policy targets and that have no proxy; nothing if there are none.

    Policies of other APIs are enforced by their own proxies.
    """
    pods: set[str] = set()
    for policy in read_plain([document], authority.settings).policies:
        if policy.audit or (policy.ref.group, policy.ref.kind) not in registered().served_kinds:
            continue
        targeted = (point for point in programs_of(authority).points_targeted(policy) if isinstance(point, str))
        workloads = (authority.world.workloads[point] for point in targeted)
        pods |= {pod.key for pod in workloads if proxy_presence(authority.world, pod) is ProxyPresence.ABSENT}
    return (line(f"not enforced at pods without an eastgate proxy: {join_names(pods)}"),) if pods else ()


async def warn_of_native(
    mesh: NativeMesh, foresee: Callable[[JsonObject], ForeseenOutcome | None], change: RequestedChange
) -> AdmissionJudgement:
    """Warn about a policy that cannot be written for an installed mesh, and about the pods that it would close.

    `foresee` runs in a thread, and raises TimeoutError if the answer would take too long.
    """
    name = mesh.value.capitalize()
    if change.new is None or change.operation is ChangeOperation.DELETE:
        return AdmissionJudgement()
    stored = {**change.new, "apiVersion": change.api_version, "kind": change.kind}
    try:
        foreseen = await asyncio.to_thread(foresee, stored)
    except TimeoutError:
        return AdmissionJudgement(warnings=(f"not checked yet: whether it can be written for {name}; see its status",))
    if foreseen is None:
        return AdmissionJudgement()
    return AdmissionJudgement(warnings=tuple(_native_warnings(name, foreseen, change)))


def _native_warnings(name: str, foreseen: ForeseenOutcome, change: RequestedChange) -> Iterator[str]:
    annotations = (change.new or {}).get("metadata", {}).get("annotations") or {}
    if annotations.get(UNWRITABLE, Unwritable.LEAVE) not in list(Unwritable):
        yield f"{UNWRITABLE} is neither {' nor '.join(Unwritable)}, and is ignored"
    if not foreseen.losses:
        return
    closes = foreseen.unwritable is Unwritable.CLOSE
    for loss in foreseen.losses:
        then = "its pods are closed where the mesh would allow more" if closes else "it is not in force"
        yield f"it cannot be written for {name}, so that {then}: {loss.code.id} {loss.message}"
    if closes and not foreseen.exactly:
        yield f"{name} cannot select exactly its pods: other pods are closed too"


def mutate_pod(options: InjectionOptions, change: RequestedChange) -> Mutation:
    """Inject the sidecar into a new pod, unless the pod itself rejects injection.

    The API server only sends pods for which the namespace or the pod requests injection. The data of this replica about
    the namespace may be older, and would leave a pod without a sidecar.
    """
    if change.new is None or change.kind != "Pod" or change.operation is not ChangeOperation.CREATE:
        return Mutation()
    pod = deepcopy(dict(change.new))
    try:
        injected = inject(pod, options) if is_wanted(pod, _INJECTED_NAMESPACE) else None
        warnings = AdmissionJudgement(warnings=warnings_of(pod))
    except InjectionRefused as error:
        return Mutation(judgement=AdmissionJudgement((AdmissionRefusal(str(error)),)))
    return Mutation(tuple(json_patch(pod, injected)) if injected is not None else (), warnings)
