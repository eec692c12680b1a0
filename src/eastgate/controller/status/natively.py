"""The condition `Programmed` of policies that proxies of Eastgate or an installed mesh enforce."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from eastgate.basics.records import dataclass
from eastgate.controller.conditions import StatusCondition
from eastgate.controller.proxies.progress import MeshReport, PolicyProgress, ProgressState
from eastgate.controller.status.notices import Notice, NoticeReason
from eastgate.convert.native import NativeMesh, NativeOutcome, NativeState, WriteFailure
from eastgate.ir import PolicyRef

# The condition `Programmed`: whether every affected proxy enforces a policy; if not, the others and the reasons.
#
# It is True only if all proxies enforce the policy. GEP-713 makes it True if some do (PartiallyProgrammed). But a
# program that waits for a policy (`kubectl wait`) reads only the status, and must not go on while some pods are open.


PROGRAMMED = "Programmed"
RECONCILING = "Reconciling"
PARTIALLY_PROGRAMMED = "PartiallyProgrammed"
NOT_ENFORCED = "NotEnforced"  # GEP-713 has no reason for a policy without an enforcing proxy

_MAX_NAMES = 5
_MAX_DETAIL_CHARS = 300
_PENDING_STATES = frozenset(
    {ProgressState.WAITING, ProgressState.NOT_APPLIED, ProgressState.DISCONNECTED, ProgressState.NO_ADDRESS}
)
_NO_PROXY = PolicyProgress(ProgressState.NO_PROXY)
_NO_ADDRESS = PolicyProgress(ProgressState.NO_ADDRESS)
_PHRASES = {
    ProgressState.NO_PROXY: "without a proxy of Eastgate",
    ProgressState.NO_ADDRESS: "without an address yet",
    ProgressState.PASSED: "reached past its proxy",
    ProgressState.REJECTED: "rejected by its proxy",
    ProgressState.CLOSED: "closed",
    ProgressState.DISCONNECTED: "with a proxy that is not connected",
    ProgressState.NOT_APPLIED: "not applied yet by the replica that serves its proxy",
    ProgressState.WAITING: "not acknowledged yet",
}


@dataclass(frozen=True, slots=True)
class TargetProgress:
    """The progress of a policy at the proxies that should enforce it.

    `missing` are the proxies that do not enforce it, and the nodes without a proxy, by their state.
    """

    enforced: int = 0
    missing: Mapping[ProgressState, Sequence[tuple[str, PolicyProgress]]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Return the number of proxies, and of nodes without one."""
        return self.enforced + sum(map(len, self.missing.values()))

    @property
    def has_proxies(self) -> bool:
        """Return whether any proxy is affected."""
        return bool(self.enforced or self.missing.keys() - {ProgressState.NO_PROXY, ProgressState.NO_ADDRESS})

    def notices(self) -> Iterator[Notice]:
        """Yield notices for rejected policies, closed ports, and unprotected pods."""
        for name, progress in self.missing.get(ProgressState.REJECTED, ()):
            yield Notice(NoticeReason.REJECTED_BY_PROXY, f"{name} rejected it: {_detail(progress)}", name)
        for name, progress in self.missing.get(ProgressState.CLOSED, ()):
            yield Notice(NoticeReason.PORT_CLOSED, f"{name}: {_detail(progress)}", name)
        for name, progress in self.missing.get(ProgressState.PASSED, ()):
            yield Notice(NoticeReason.NOT_ENFORCED, f"{name}: {_detail(progress)}", name)
        unguarded = self.missing.get(ProgressState.NO_PROXY)
        if unguarded:
            open_to = f"{len(unguarded)} of {self.total} have no proxy of Eastgate, and are not guarded by it"
            yield Notice(NoticeReason.NOT_ENFORCED, f"{open_to}: {join_names(name for name, _ in unguarded)}")


def progress_at(
    nodes: Iterable[str],
    report: MeshReport,
    policy: str,
    generation: int,
    uid: str,
    has_address: Callable[[str], bool] = lambda _node: True,
) -> TargetProgress:
    """Return the progress of a generation of a policy, by its `policy_name`, at nodes.

    A pod without an address accepts no connections yet, so without a proxy it is not open either.
    """
    enforced = 0
    missing: dict[ProgressState, list[tuple[str, PolicyProgress]]] = {}
    for node in nodes:
        proxies = report.progress_by_proxy(policy, generation, node, uid)
        for progress in proxies or (_NO_PROXY if has_address(node) else _NO_ADDRESS,):
            if progress.enforced:
                enforced += 1
            else:
                missing.setdefault(progress.state, []).append((progress.proxy or node, progress))
    return TargetProgress(enforced, missing)


def programmed(progress: TargetProgress, *, audit: bool) -> StatusCondition:
    """Return the condition of a policy that proxies of Eastgate enforce."""
    total, enforced = progress.total, progress.enforced
    if total == 0:
        message = "it selects nothing that runs now; later pods are guarded from their start"
        return StatusCondition.unknown("Programmed", RECONCILING, message)
    if enforced == total:
        what = "observed only: it is reported and decides nothing; seen by" if audit else "in force at"
        return StatusCondition.true("Programmed", PROGRAMMED, f"{what} {_all_of(total)}")
    missing = "; ".join(_missing(progress))
    if enforced:
        what = "observed by" if audit else "in force at"
        return StatusCondition.false("Programmed", PARTIALLY_PROGRAMMED, f"{what} {enforced} of {total}; {missing}")
    if progress.missing.keys() & _PENDING_STATES:
        return StatusCondition.false("Programmed", RECONCILING, f"in force at none of {total} yet; {missing}")
    return StatusCondition.false("Programmed", NOT_ENFORCED, f"no proxy enforces it; {missing}")


def _missing(progress: TargetProgress) -> Iterator[str]:
    """Yield a text for each reason for which proxies do not enforce a policy, with their number and names."""
    for state, phrase in _PHRASES.items():
        proxies = progress.missing.get(state)
        if not proxies:
            continue
        if state in (ProgressState.REJECTED, ProgressState.CLOSED, ProgressState.PASSED):
            names = join_names(f"{name} ({_detail(own)})" for name, own in proxies)
        else:
            names = join_names(name for name, _ in proxies)
        yield f"{len(proxies)} {phrase}: {names}"


def _all_of(total: int) -> str:
    return "the one proxy concerned" if total == 1 else f"all {total} proxies concerned"


def _detail(progress: PolicyProgress) -> str:
    detail = progress.detail
    return detail if len(detail) <= _MAX_DETAIL_CHARS else f"{detail[:_MAX_DETAIL_CHARS]}..."


def join_names(names: Iterable[str]) -> str:
    """Return the first few names, sorted, and the number of the others."""
    listed = sorted(names)
    more = len(listed) - _MAX_NAMES
    return ", ".join(listed[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NativeEvidence:
    """The evidence that a mesh enforces the policies that were written for it.

    `not_serving` names a control plane without a ready endpoint, or is None. `total` is the number of pods that the
    policy targets, and `unguarded` are those without a proxy of the mesh.
    """

    not_serving: str | None
    total: int
    unguarded: tuple[str, ...] = ()

    def missing(self, name: str) -> Iterator[str]:
        """Yield texts about the missing evidence."""
        if self.not_serving is not None:
            yield f"no control plane of {name} serves it: {self.not_serving} has no ready endpoint"
        if self.unguarded:
            yield f"{len(self.unguarded)} without a proxy of {name}: {join_names(self.unguarded)}"


def natively_programmed(
    mesh: NativeMesh, outcome: NativeOutcome, evidence: NativeEvidence, *, audit: bool
) -> StatusCondition:
    """Return the condition: True only if the mesh enforces, and answers every request as the policy does."""
    name = mesh.value.capitalize()
    losses = "; ".join(loss.message for loss in outcome.losses)
    missing = "".join(f"; {each}" for each in evidence.missing(name))
    match outcome.state:
        case NativeState.WRITTEN:
            how = f"written for {name}: {join_names(outcome.objects)}"
        case NativeState.COVERED:
            how = f"it cannot be written, but {name} answers as it says by other written policies: {losses}"
        case NativeState.CLOSED:
            also = f"; other pods are closed too: {join_names(outcome.also_closed)}"
            message = f"its targets are closed, since it cannot be written for {name}: {losses}"
            message += f"{also if outcome.also_closed else ''}{missing}"
            return StatusCondition.false("Programmed", NOT_ENFORCED, message)
        case NativeState.NOT_WRITTEN:
            message = f"no proxy enforces it, since it cannot be written for {name}: {losses}"
            return StatusCondition.false("Programmed", NOT_ENFORCED, message)
    if outcome.differences:
        message = f"{how}; {'; '.join(_differences(name, outcome))}{missing}"
        return StatusCondition.false("Programmed", PARTIALLY_PROGRAMMED, message)
    guarded = evidence.total - len(evidence.unguarded)
    if evidence.total == 0:
        message = f"{how}; it selects nothing that runs now{missing}"
        return StatusCondition.unknown("Programmed", RECONCILING, message)
    if missing and (guarded == 0 or evidence.not_serving is not None):
        return StatusCondition.false("Programmed", NOT_ENFORCED, f"no proxy is known to enforce it; {how}{missing}")
    if missing:
        message = f"in force at {guarded} of {evidence.total}; {how}{missing}"
        return StatusCondition.false("Programmed", PARTIALLY_PROGRAMMED, message)
    observed = "; observed only: it is reported and decides nothing" if audit else ""
    return StatusCondition.true("Programmed", PROGRAMMED, f"{how}{observed}")


def not_written_yet(mesh: NativeMesh) -> StatusCondition:
    """Return the condition of a generation that was not written, or not completely."""
    message = f"it is not written for {mesh.value.capitalize()} yet"
    return StatusCondition.false("Programmed", RECONCILING, message)


def without_failures(policies: Mapping[PolicyRef, T], failures: Iterable[WriteFailure]) -> dict[PolicyRef, T]:
    """Return the written policies. After a failure in a namespace, none of its policies may have been written.

    The written form of a cluster-wide policy may be in any namespace.
    """
    failed = {failure.step.namespace for failure in failures}
    return {ref: each for ref, each in policies.items() if not failed or ref.namespace not in (None, *failed)}


def native_notices(mesh: NativeMesh, outcome: NativeOutcome, evidence: NativeEvidence) -> Iterator[Notice]:
    """Yield notices for policies that cannot be written, that the mesh widens, or whose proxies are missing."""
    name = mesh.value.capitalize()
    if outcome.losses and outcome.state is not NativeState.COVERED:
        losses = "; ".join(f"{loss.code.id}: {loss.message}" for loss in outcome.losses)
        yield Notice(NoticeReason.NOT_CONVERTED, f"it cannot be written for {name}: {losses}", losses)
    if any(difference.allowed for difference in outcome.differences):
        yield Notice(NoticeReason.NOT_ENFORCED, "; ".join(_differences(name, outcome)))
    if outcome.also_closed:
        closed = f"{name} cannot select exactly its pods; closed with them: {join_names(outcome.also_closed)}"
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
