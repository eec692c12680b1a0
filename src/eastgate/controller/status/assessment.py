"""Computes the status of a policy from the policy, the world, and the acknowledgements of proxies.

The dialect decides whether a policy is accepted (`Dialect.conditions`), for each ancestor. The proxies decide whether
it is in force. A policy with errors closes its targets, and its status reports that. A policy that is being deleted
counts as long as its object exists: finalizers must not open anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from eastgate import dialects
from eastgate.authority.authority import Authority, programs_of
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.controller.conditions import ConditionStatus, StatusCondition
from eastgate.controller.proxies.progress import MeshReport
from eastgate.controller.status.ancestors import AncestorRef, GatewayPaths, ancestors_of, nodes_of
from eastgate.controller.status.natively import (
    PARTIALLY_PROGRAMMED,
    NativeEvidence,
    join_names,
    native_notices,
    natively_programmed,
    not_written_yet,
    programmed,
    progress_at,
)
from eastgate.controller.status.notices import Notice, NoticeReason
from eastgate.convert.native import NativeMesh, NativeOutcome, NativePlan, NativeState, has_proxy
from eastgate.dialects import Policy
from eastgate.dialects.base import Condition, Dialect, Kind
from eastgate.dialects.registry import Registry
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.dialects.serving import Status
from eastgate.engine.compiled import Program
from eastgate.engine.programs import Programs
from eastgate.envoy.plan.decisions import policy_name
from eastgate.ir import PolicyRef

# Policies that others override: a default of the cluster does not apply if a namespace has policies.


_OVERRIDDEN = "Overridden"


@dataclass(frozen=True, slots=True)
class Overrides:
    """The number of workloads at which a policy is overridden, their total, and the policies that apply instead."""

    overridden: int
    total: int
    others: frozenset[PolicyRef]

    def limit(self, programmed: StatusCondition) -> StatusCondition:
        """Return the condition of the policy, from the condition that it would have without overrides."""
        by = f"by {join_names(map(str, self.others))}"
        if self.overridden == self.total:
            return StatusCondition.false("Programmed", _OVERRIDDEN, f"overridden everywhere, {by}")
        if programmed.status is not ConditionStatus.TRUE:
            message = f"{programmed.message}; overridden at {self.overridden}, {by}"
            return replace(programmed, message=message)
        in_force = self.total - self.overridden
        message = f"in force at {in_force} of {self.total}; overridden at {self.overridden}, {by}"
        return StatusCondition.true("Programmed", PARTIALLY_PROGRAMMED, message)


def find_overrides(policy: Policy, nodes: Iterable[str], engine: Programs[Policy]) -> Overrides | None:
    """Return the overrides of a cluster-wide policy, or None if it applies everywhere or is only observed."""
    if policy.audit or next(iter(policy.origins), None) is None:
        return None
    asked: dict[int, bool] = {}
    overridden: list[str] = []
    workloads = [node for node in nodes if node in engine.world.workloads]
    for node in workloads:
        program = engine.program(node)
        if id(program) not in asked:
            asked[id(program)] = policy.ref in _refs(program)
        if not asked[id(program)]:
            overridden.append(node)
    if not overridden:
        return None
    dialect = dialects.dialect_of(policy)
    others = {
        attachment.policy.ref
        for node in overridden
        for attachment in engine.attached(node)
        if isinstance(attachment.policy, dialect.model) and attachment.policy.ref.namespace is not None
    }
    return Overrides(len(overridden), len(workloads), frozenset(others))


def _refs(program: Program) -> set[PolicyRef | None]:
    """Return the policies whose rules a program evaluates."""
    chains = (chain for layer in program.layers for chain in layer.chains)
    return {rule.origin.policy for chain in chains for rule in chain.rules(observed=False)}


_ACCEPTED = "Accepted"
_AVAILABLE = "Available"
_NOT_FOUND = frozenset({"TargetNotFound", "NoMatchingParent"})
_MAX_TARGETS = 3


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """The object from which a policy was read. Each generation of the object counts as another policy."""

    generation: int
    uid: str = ""
    is_being_deleted: bool = False

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> StoredPolicy:
        """Return the generation, uid and deletion of an object of the API server."""
        metadata = obj["metadata"]
        return cls(metadata.get("generation", 0), metadata.get("uid", ""), bool(metadata.get("deletionTimestamp")))


@dataclass(slots=True)
class ClusterView:
    """The inputs of the statuses of policies, at one moment.

    `mesh` is the name of Eastgate's XMesh. `native` is the plan for an installed mesh, which enforces the policies with
    an outcome in the plan. `written` are the policies in the state in which the plan was written, without those whose
    write failed (None: all, in their current state). `not_serving` names the control plane of that mesh if none of its
    endpoints is ready. `shared_groups` are the API groups whose shared status Eastgate writes, since their own
    controller does not run.
    """

    authority: Authority
    report: MeshReport = field(default_factory=MeshReport)
    mesh: str | None = None
    native: NativePlan | None = None
    written: Mapping[PolicyRef, StoredPolicy] | None = None
    not_serving: str | None = None
    shared_groups: frozenset[str] = frozenset()
    _indexed: _Index | None = None
    _outcomes: tuple[NativePlan, Mapping[PolicyRef, NativeOutcome]] | None = None

    def outcome_of(self, ref: PolicyRef) -> tuple[NativeMesh, NativeOutcome] | None:
        """Return the mesh that must enforce a policy, and its outcome there, or None for proxies of Eastgate."""
        if self.native is None:
            return None
        if self._outcomes is None or self._outcomes[0] is not self.native:
            self._outcomes = self.native, {outcome.source: outcome for outcome in self.native.outcomes}
        outcome = self._outcomes[1].get(ref)
        return (self.native.mesh, outcome) if outcome is not None else None

    def is_written(self, ref: PolicyRef, stored: StoredPolicy) -> bool:
        """Return whether this generation of a policy was written for the installed mesh."""
        if self.written is None:
            return True
        written = self.written.get(ref)
        return written is not None and (written.generation, written.uid) == (stored.generation, stored.uid)

    def evidence_at(self, nodes: Sequence[str], mesh: NativeMesh) -> NativeEvidence:
        """Return the evidence that a mesh enforces a policy at these pods."""
        workloads = self.authority.world.workloads
        unguarded = tuple(node for node in nodes if node in workloads and not has_proxy(workloads[node], mesh))
        return NativeEvidence(self.not_serving, len(nodes), unguarded)

    def forget(self) -> None:
        """Drop the index, which holds removed policies."""
        self._indexed = None

    @property
    def index(self) -> _Index:
        """Return the index of policies. It is built again after a change."""
        version = programs_of(self.authority).version
        if self._indexed is None or self._indexed.version != version:
            self._indexed = _Index(self.authority)
        return self._indexed


class _Index:
    def __init__(self, authority: Authority) -> None:
        self.version = programs_of(authority).version
        self.by_ref = {policy.ref: policy for policy in authority.policies}
        self._by_home: dict[tuple[str, str | None], list[Policy]] = {}
        for policy in self.by_ref.values():
            self._by_home.setdefault((policy.ref.group, policy.ref.namespace), []).append(policy)
        self._world = authority.world

    @cached_property
    def paths(self) -> GatewayPaths:
        return GatewayPaths(self._world)

    def beside(self, ref: PolicyRef) -> Sequence[Policy]:
        """Return the policies that a policy may depend on or conflict with: those of its API and namespace."""
        return self._by_home.get((ref.group, ref.namespace), ())


@dataclass(frozen=True, slots=True)
class StatusEntry:
    """The conditions of a policy for one ancestor, or as a whole (None)."""

    ancestor: AncestorRef | None
    conditions: tuple[StatusCondition, ...]

    @property
    def severity(self) -> int:
        """Return 0 for an entry whose conditions are all True, and more the earlier a condition is not True."""
        statuses = [condition.status for condition in self.conditions]
        return next((len(statuses) - at for at, status in enumerate(statuses) if status is not ConditionStatus.TRUE), 0)


@dataclass(frozen=True, slots=True)
class Assessment:
    """The assessment of a policy: the entries of its status, the worst first, and the notices for events."""

    ref: PolicyRef
    form: Status
    stored: StoredPolicy
    entries: tuple[StatusEntry, ...] = ()
    notices: tuple[Notice, ...] = ()
    nodes: frozenset[str] = frozenset()
    """The nodes that must enforce it."""

    @property
    def is_in_force(self) -> bool:
        """Return whether every condition is True, without any notice."""
        return bool(self.entries) and not self.notices and all(entry.severity == 0 for entry in self.entries)


def kind_of(ref: PolicyRef) -> Kind[Any] | None:
    """Return the kind of a policy in a version with a status, or None if Eastgate writes no status for it."""
    return _with_status(dialects.registered()).get((ref.group, ref.kind))


@lru_cache(maxsize=2)
def _with_status(registry: Registry) -> Mapping[tuple[str, str], Kind[Any]]:
    return {(kind.group, kind.kind): kind for kind in registry.policies.values() if kind.status is not None}


def assess(policy: Policy, stored: StoredPolicy, view: ClusterView) -> Assessment | None:
    """Return the assessment of a policy, or None if Eastgate does not write its status."""
    kind = kind_of(policy.ref)
    if kind is None or kind.status is None or (isinstance(policy, RejectedPolicy) and not policy.is_policy):
        return None
    is_ours = kind.status_lease is None or kind.group in view.shared_groups
    parts = list(_parts(policy, stored, view, kind)) if is_ours else []
    if kind.served is None:  # its own controller reports the parts without proxies of Eastgate
        parts = [part for part in parts if part.is_ours]
    entries = sorted((StatusEntry(part.ancestor, tuple(part.conditions)) for part in parts), key=_worst_first)
    notices = dict.fromkeys(notice for part in parts for notice in part.notices)
    nodes = frozenset(node for part in parts for node in part.nodes)
    return Assessment(policy.ref, kind.status, stored, tuple(entries), tuple(notices), nodes)


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a policy that is about one ancestor."""

    ancestor: AncestorRef | None
    conditions: Sequence[StatusCondition]
    notices: Sequence[Notice]
    is_ours: bool
    nodes: Sequence[str]


def _worst_first(entry: StatusEntry) -> tuple[int, tuple[str, ...]]:
    ancestor = entry.ancestor
    name = (ancestor.kind, ancestor.namespace or "", ancestor.name, ancestor.section or "") if ancestor else ()
    return -entry.severity, name


def _parts(policy: Policy, stored: StoredPolicy, view: ClusterView, kind: Kind[Any]) -> Iterator[_Part]:
    world = view.authority.world
    match kind.status:
        case Status.ANCESTORS:
            for own in ancestors_of(policy.ref, policy.targets, world, view.mesh):
                yield _part(own.ancestor, replace(policy, targets=own.targets), stored, view)
        case Status.PARENTS if not isinstance(policy, RejectedPolicy):
            for parent, about in dialects.dialect_of(policy).split_parents(policy):
                ancestor = AncestorRef(parent.group, parent.kind, parent.name, parent.namespace)
                yield _part(ancestor, about, stored, view)
        case _:
            yield _part(None, policy, stored, view)


def _part(ancestor: AncestorRef | None, policy: Policy, stored: StoredPolicy, view: ClusterView) -> _Part:
    authority = view.authority
    nodes = nodes_of(programs_of(authority).points_targeted(policy), authority.world, view.index)
    name = policy_name(policy.ref)
    has_address = partial(_has_address, authority.world)
    progress = progress_at(nodes, view.report, name, stored.generation, stored.uid, has_address)
    native = view.outcome_of(policy.ref)
    if isinstance(policy, RejectedPolicy):
        closes = native is None or native[1].state is NativeState.CLOSED
        return _Part(ancestor, [_invalid(policy, closes)], [_invalid_notice(policy)], progress.has_proxies, nodes)
    if native is not None and not view.is_written(policy.ref, stored):
        in_force, notices = not_written_yet(native[0]), []
    elif native is not None:
        evidence = view.evidence_at(nodes, native[0])
        in_force = natively_programmed(*native, evidence, audit=policy.audit)
        notices = list(native_notices(*native, evidence))
    else:
        in_force, notices = programmed(progress, audit=policy.audit), list(progress.notices())
        overriding = find_overrides(policy, nodes, programs_of(authority)) if ancestor is None else None
        in_force = overriding.limit(in_force) if overriding is not None else in_force
    if stored.is_being_deleted:
        in_force = replace(in_force, message=f"{in_force.message}; it is being deleted, and counts until it is gone")
    own = dialects.conditions(policy, view.index.beside(policy.ref), authority.settings, authority.world)
    conditions = list(_conditions(own, in_force, ancestor, audit=policy.audit))
    is_accepted = all(condition.status == "True" for condition in own if condition.type in (_ACCEPTED, _AVAILABLE))
    is_ours = progress.has_proxies or native is not None
    return _Part(ancestor, conditions, notices if is_accepted else (), is_ours, nodes)


def _has_address(world: World, node: str) -> bool:
    """Return whether a node is reachable. A pod on the network of its host has no address of its own."""
    pod = world.workloads.get(node)
    return pod is None or not pod.is_pod or pod.host_network or bool(pod.ips)


def _conditions(
    own: Sequence[Condition], in_force: StatusCondition, ancestor: AncestorRef | None, *, audit: bool
) -> Iterator[StatusCondition]:
    """Yield the conditions of a dialect with texts for a cluster, and then the condition that the policy is in force.

    A policy that is not accepted has no `Programmed`. `Available` covers both, so it holds only if the policy is also
    in force.
    """
    is_accepted = False
    for condition in own:
        if condition.type == _AVAILABLE and condition.status == "True":
            holds = in_force.status is ConditionStatus.TRUE
            yield _copy(condition) if holds else replace(in_force, type=_AVAILABLE)
        elif condition.type == _ACCEPTED and condition.status == "True":
            is_accepted = True
            mode = "; in audit mode it is reported and decides nothing" if audit else ""
            yield StatusCondition.true(_ACCEPTED, condition.reason, f"it is valid, and its target exists{mode}")
        elif condition.reason in _NOT_FOUND and ancestor is not None:
            yield StatusCondition.false(condition.type, condition.reason, f"there is no {ancestor}")
        else:
            yield _copy(condition)
    if is_accepted:
        yield in_force


def _copy(condition: Condition) -> StatusCondition:
    return StatusCondition(condition.type, ConditionStatus(condition.status), condition.reason, condition.message)


def _invalid(policy: RejectedPolicy, closes: bool) -> StatusCondition:
    errors = policy.errors
    others = len(errors) - 1
    more = f"; {others} more error{'' if others == 1 else 's'}" if others > 0 else ""
    targets = [str(target) for target in policy.targets]
    hidden = len(targets) - _MAX_TARGETS
    closed = ", ".join(targets[:_MAX_TARGETS]) + (f" and {hidden} more" if hidden > 0 else "")
    if closes:
        then = f"; its targets are closed until it is corrected: {closed}" if targets else ""
    else:
        then = "; it is not in force"
    type_, reason = _dialect_of(policy.ref).refusal
    return StatusCondition.false(type_, reason, f"{_error_text(errors[:1])}{more}{then}")


def _invalid_notice(policy: RejectedPolicy) -> Notice:
    text = _error_text(policy.errors[:1])
    return Notice(NoticeReason.INVALID, text, text)


def _error_text(errors: Sequence[Diagnostic]) -> str:
    """Return the code, the field, the message and the help of the first error."""
    if not errors:
        return "it cannot be read"
    error = errors[0]
    field_name = error.span.source.field_at(error.span) if error.span is not None else ""
    where = f" {field_name}:" if field_name else ""
    way_out = f" ({error.help})" if error.help else ""
    return f"{error.code.id}:{where} {error.message}{way_out}"


def _dialect_of(ref: PolicyRef) -> Dialect[Any]:
    name = ref.group, ref.kind
    own = (each for each in dialects.DIALECTS if any((kind.group, kind.kind) == name for kind in each.kinds))
    return next(own)
