"""The condition `Programmed`: whether every proxy concerned enforces a policy; if not, which do not, and why.

It is True only where all of them do. GEP-713 would have it True where some do (PartiallyProgrammed); but what waits for
a policy (`kubectl wait`) looks at the status alone, and must not go on while some pods are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.controller.conditions import StatusCondition
from eastgate.controller.proxies.progress import MeshReport, PolicyProgress, ProgressState
from eastgate.controller.status.notices import Notice, NoticeReason

PROGRAMMED = "Programmed"
RECONCILING = "Reconciling"
PARTIALLY_PROGRAMMED = "PartiallyProgrammed"
NOT_ENFORCED = "NotEnforced"  # GEP-713 has no reason for a policy that nobody is there to enforce

_MOST_NAMES = 5
_LONGEST_DETAIL = 300
_MOVING = frozenset(
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
    """How far a policy has come at the proxies that should enforce it.

    `missing` are those that do not, and the nodes that have no proxy, by how far it has come there.
    """

    enforced: int = 0
    missing: Mapping[ProgressState, Sequence[tuple[str, PolicyProgress]]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Return the number of proxies, and of nodes without one."""
        return self.enforced + sum(map(len, self.missing.values()))

    @property
    def has_proxies(self) -> bool:
        """Return whether any proxy is concerned."""
        return bool(self.enforced or self.missing.keys() - {ProgressState.NO_PROXY, ProgressState.NO_ADDRESS})

    def notices(self) -> Iterator[Notice]:
        """Yield what a person must see: what was rejected, what is closed, and what is open."""
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
    """Return how far a generation of a policy, by its `policy_name`, has come at nodes.

    Nothing can connect to a pod that has no address yet, so that one without a proxy is not open either.
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
    """Return the condition of a policy that proxies of ours enforce."""
    total, enforced = progress.total, progress.enforced
    if total == 0:
        message = "it selects nothing that runs now; what comes later is guarded from its start"
        return StatusCondition.unknown("Programmed", RECONCILING, message)
    if enforced == total:
        what = "observed only: it is reported and decides nothing; seen by" if audit else "in force at"
        return StatusCondition.true("Programmed", PROGRAMMED, f"{what} {_all_of(total)}")
    missing = "; ".join(_missing(progress))
    if enforced:
        what = "observed by" if audit else "in force at"
        return StatusCondition.false("Programmed", PARTIALLY_PROGRAMMED, f"{what} {enforced} of {total}; {missing}")
    if progress.missing.keys() & _MOVING:
        return StatusCondition.false("Programmed", RECONCILING, f"in force at none of {total} yet; {missing}")
    return StatusCondition.false("Programmed", NOT_ENFORCED, f"nobody enforces it; {missing}")


def _missing(progress: TargetProgress) -> Iterator[str]:
    """Yield, for each reason for which proxies do not enforce a policy, how many they are and which."""
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
    return detail if len(detail) <= _LONGEST_DETAIL else f"{detail[:_LONGEST_DETAIL]}..."


def join_names(names: Iterable[str]) -> str:
    """Return the first few names, sorted, and how many more there are."""
    listed = sorted(names)
    more = len(listed) - _MOST_NAMES
    return ", ".join(listed[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
