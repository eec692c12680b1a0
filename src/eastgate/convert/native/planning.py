"""Plans native policies: writes the policies that convert without loss, and proves that the mesh allows no more.

If the mesh would allow more, the outcome of the policies reports it. A policy can ask to close its pods instead, and
the operator can ask for all policies. In Istio a DENY of everything closes exactly the pods of the policies that cannot
be written. Linkerd denies every request that no policy authorizes, so there the authorizations on these pods are left
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import Manifests
from eastgate.basics.records import dataclass
from eastgate.cluster import Operator, Selector
from eastgate.convert import Options, codes
from eastgate.convert.istio import GROUP, KIND, VERSION
from eastgate.convert.native.converting import NativeObject, SourceConversion, convert_sources, marked
from eastgate.convert.native.model import (
    ForeseenOutcome,
    Json,
    NativeDifference,
    NativeLoss,
    NativeMesh,
    NativeOutcome,
    NativePlan,
    NativeState,
    Unwritable,
    object_id,
)
from eastgate.convert.native.proving import Prover
from eastgate.convert.native.situation import Situation, SourcePolicy, situation_of
from eastgate.convert.native.targets import pods_of
from eastgate.convert.selectors import label_sets
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.ir import PolicyRef
from eastgate.reach.comparison import AuthorityComparison, VerdictDifference
from eastgate.reach.pairing import Pair

# Closes the targets of policies that cannot be written for Istio: a DENY of everything precedes every ALLOW.


def closures(source: SourcePolicy, situation: Situation) -> Iterator[NativeObject]:
    """Yield policies of Istio that deny every request to the pods that a policy targets.

    If Istio cannot select exactly these pods, more pods of their namespace are closed. Pods of the root namespace
    cannot be closed, because a policy there applies to all namespaces.
    """
    root = situation.settings.section(IstioSettings).root_namespace
    seen: list[tuple[str, dict[str, str]]] = []
    for target in source.closing.targets:
        for pods in pods_of(target, situation):
            for labels in label_sets(pods.selector) or label_sets(_relaxed(pods.selector)) or ():
                if pods.namespace != root and (pods.namespace, labels) not in seen:
                    seen.append((pods.namespace, labels))
                    yield marked(_deny_all(labels), pods.namespace, [source.owner], situation)


def closes_exactly(source: SourcePolicy, situation: Situation) -> bool:
    """Return whether Istio can select exactly the pods that a policy targets."""
    targeted = (pods for target in source.closing.targets for pods in pods_of(target, situation))
    return all(label_sets(pods.selector) is not None for pods in targeted)


def is_out_of_reach(members: Sequence[str], situation: Situation) -> bool:
    """Return whether these pods cannot be closed: a policy in Istio's root namespace would apply to all namespaces."""
    root = situation.settings.section(IstioSettings).root_namespace
    return situation.mesh is NativeMesh.ISTIO and all(member.partition("/")[0] == root for member in members)


def _relaxed(selector: Selector) -> Selector:
    """Return a selector of labels with values alone, which selects the same pods or more."""
    by_value = (expression for expression in selector.expressions if expression.operator is Operator.IN)
    few = Selector(selector.match_labels, frozenset(by_value))
    return few if label_sets(few) is not None else Selector(selector.match_labels)


def _deny_all(labels: dict[str, str]) -> Json:
    target: Json = {"selector": {"matchLabels": labels}} if labels else {}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "spec": {**target, "action": "DENY", "rules": [{}]},
    }


def wanted(
    cluster: Manifests | Authority,
    mesh: NativeMesh,
    options: Options | None = None,
    unwritable: Unwritable = Unwritable.LEAVE,
) -> NativePlan:
    """Return the native objects that should exist for the policies of GEP-3779, and the outcome for each policy.

    The cluster must be as its API server has it: its policies have UIDs, and all native policies are present, including
    those of earlier runs. `unwritable` is the default for policies without that annotation. Raises ValueError for a
    policy without a UID.
    """
    situation = situation_of(cluster, mesh)
    if not situation.sources:
        return NativePlan(mesh, (), ())
    chosen = replace(options or Options(), stands_alone=True)
    prover = Prover(situation, chosen)
    closed: dict[str, SourcePolicy] = {}
    while True:
        draft = _draft(situation, prover, chosen, closed)
        culprits = _culprits(draft, prover, closed, unwritable)
        if not culprits:
            return _plan(draft, prover)
        closed.update((source.owner.uid, source) for source in culprits)


def foresee(
    cluster: Manifests | Authority,
    put: Json,
    mesh: NativeMesh,
    options: Options | None = None,
    unwritable: Unwritable = Unwritable.LEAVE,
) -> ForeseenOutcome | None:
    """Return the expected outcome of storing a policy of GEP-3779; None for any other object.

    This function proves nothing, and reads only the namespace of the policy.
    """
    metadata = {"uid": "not-stored-yet", **put["metadata"]}
    situation = situation_of(cluster, mesh, {**put, "metadata": metadata})
    source = next((source for source in situation.sources if source.owner.uid == metadata["uid"]), None)
    if source is None:
        return None
    conversion = convert_sources(situation, (), replace(options or Options(), stands_alone=True))
    return ForeseenOutcome(
        conversion.losses.get(source.owner.uid, ()),
        source.unwritable or unwritable,
        mesh is NativeMesh.LINKERD or closes_exactly(source, situation),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """Objects that may be written, and their comparison with the policies. `closed` are policies by UID."""

    situation: Situation
    conversion: SourceConversion
    objects: tuple[NativeObject, ...]
    comparison: AuthorityComparison
    closed: dict[str, SourcePolicy]

    @property
    def written(self) -> frozenset[str]:
        return frozenset(source.owner.uid for source in self.conversion.converted)

    @property
    def differences(self) -> Iterator[VerdictDifference]:
        yield from self.comparison.differences
        yield from (doubt.difference for doubt in self.comparison.doubts if doubt.difference is not None)

    @property
    def wider(self) -> list[Pair]:
        return list(dict.fromkeys(difference.pair for difference in self.differences if difference.new.allowed))


def _draft(situation: Situation, prover: Prover, options: Options, closed: dict[str, SourcePolicy]) -> _Draft:
    dropped = closed if situation.mesh is NativeMesh.LINKERD else ()
    conversion = convert_sources(situation, dropped, options)
    objects = list(conversion.objects)
    if situation.mesh is NativeMesh.ISTIO:
        for source in closed.values():
            objects += closures(source, situation)
    comparison = prover.compare(native.manifest for native in objects)
    return _Draft(situation, conversion, tuple(objects), comparison, dict(closed))


def _culprits(
    draft: _Draft, prover: Prover, closed: dict[str, SourcePolicy], unwritable: Unwritable
) -> list[SourcePolicy]:
    """Return further policies to close, so that the mesh allows less. Each policy, or the default, must ask for this.

    In Linkerd the policy that cannot be written asks, and the authorizations on its pods are left out.
    """

    def asks(source: SourcePolicy) -> bool:
        return (source.unwritable or unwritable) is Unwritable.CLOSE

    culprits: dict[str, SourcePolicy] = {}
    for pair in draft.wider:
        if is_out_of_reach(pair.members, draft.situation):
            continue
        there = [s for s in prover.sources_at(pair.kind, pair.members) if s.owner.uid not in closed and not s.audits]
        written = [source for source in there if source.owner.uid in draft.written]
        unwritten = [source for source in there if source.owner.uid not in draft.written]
        if draft.situation.mesh is NativeMesh.LINKERD:
            chosen = written if any(map(asks, unwritten or written)) else []
        else:
            chosen = list(filter(asks, unwritten or written))
        culprits.update((source.owner.uid, source) for source in chosen)
    return list(culprits.values())


# Outcomes


def _plan(draft: _Draft, prover: Prover) -> NativePlan:
    by_source: dict[str, list[NativeDifference]] = {}
    for difference in _summaries(draft, prover):
        for source in difference[1]:
            if not source.audits:  # an audited policy decides nothing
                by_source.setdefault(source.owner.uid, []).append(difference[0])
    outcomes = tuple(
        _outcome(source, draft, tuple(by_source.get(source.owner.uid, ()))) for source in draft.situation.sources
    )
    doubts = tuple(
        dict.fromkeys(
            f"{doubt.reason}: {doubt.subject}" for doubt in draft.comparison.doubts if doubt.difference is None
        )
    )
    return NativePlan(
        draft.situation.mesh, tuple(sorted((n.manifest for n in draft.objects), key=object_id)), outcomes, doubts
    )


def _outcome(source: SourcePolicy, draft: _Draft, differences: tuple[NativeDifference, ...]) -> NativeOutcome:
    uid = source.owner.uid
    objects = tuple(sorted("/".join(object_id(n.manifest)[1:]) for n in draft.objects if source.owner in n.owners))
    losses = draft.conversion.losses.get(uid, ())
    state = _state(source, draft, objects, differences)
    if uid in draft.closed and not losses:
        message = f"the mesh would allow denied requests to pods of {source.ref}: they are closed"
        losses = (NativeLoss(codes.WIDER, message, "check why other policies on the same pods are not written"),)
    also_closed = tuple(sorted(_also_closed(source, draft))) if uid in draft.closed else ()
    return NativeOutcome(source.ref, uid, state, objects, losses, differences, also_closed)


def _also_closed(source: SourcePolicy, draft: _Draft) -> Iterator[str]:
    """Yield the pods that a policy does not target, and that Istio closes together with its own."""
    if draft.situation.mesh is not NativeMesh.ISTIO:
        return
    targeted = [pods for target in source.closing.targets for pods in pods_of(target, draft.situation)]
    closing = [closure.manifest for closure in closures(source, draft.situation)]
    for workload in draft.situation.world.workloads.values():
        labels = workload.labels.items()
        is_closed = any(
            manifest["metadata"]["namespace"] == workload.namespace
            and manifest["spec"].get("selector", {}).get("matchLabels", {}).items() <= labels
            for manifest in closing
        )
        if is_closed and not any(
            pods.namespace == workload.namespace and pods.selector.matches(workload.labels) for pods in targeted
        ):
            yield workload.key


def _state(
    source: SourcePolicy, draft: _Draft, objects: Sequence[str], differences: Sequence[NativeDifference]
) -> NativeState:
    uid = source.owner.uid
    is_closed = uid in draft.closed and bool(objects)
    if is_closed or uid in draft.written:
        return NativeState.CLOSED if is_closed else NativeState.WRITTEN
    if source.audits:
        return NativeState.NOT_WRITTEN
    is_open = any(difference.allowed for difference in differences)
    if source.fault is not None and not is_open:  # its rules are unknown, so everything is denied
        return NativeState.CLOSED
    if not differences:
        return NativeState.COVERED
    # Linkerd denies every request that no policy authorizes.
    is_closed = draft.situation.mesh is NativeMesh.LINKERD and not is_open
    return NativeState.CLOSED if is_closed else NativeState.NOT_WRITTEN


def _summaries(draft: _Draft, prover: Prover) -> Iterator[tuple[NativeDifference, Sequence[SourcePolicy]]]:
    """Yield one difference for each destination and verdict, with the policies there."""
    seen: set[tuple[int, bool]] = set()
    for difference in draft.differences:
        pair, allowed = difference.pair, difference.new.allowed
        if (id(pair), allowed) in seen:
            continue
        seen.add((id(pair), allowed))
        confirmation = difference.confirmation
        example = tuple(confirmation.question.arguments) if confirmation is not None else None
        names = tuple(_name(pair, member, prover) for member in pair.members)
        yield (
            NativeDifference(names, allowed, example, tuple(_beside(draft, pair))),
            prover.sources_at(pair.kind, pair.members),
        )


def _name(pair: Pair, member: str, prover: Prover) -> str:
    probed = prover.probes.get(member)
    return str(probed) if probed is not None else f"{pair.kind}:{member}"


def _beside(draft: _Draft, pair: Pair) -> Iterator[PolicyRef]:
    """Yield the policies of the mesh for a destination that Eastgate did not write."""
    mesh = draft.comparison.new
    pods = [member for member in pair.members if pair.kind == "pod" and member in mesh.world.workloads]
    attached = {each.policy.ref for pod in pods for each in programs_of(mesh).attached(pod)}
    taken = draft.situation.taken
    refs = (ref for ref in attached if (ref.group, ref.kind, ref.namespace or "", ref.name) in taken)
    yield from sorted(refs, key=str)
