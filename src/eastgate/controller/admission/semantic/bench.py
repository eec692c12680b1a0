"""Copies of the authority, which judge changes and evaluate Invariants."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

from eastgate.authority.authority import Authority
from eastgate.authority.reading import ManifestError, Manifests
from eastgate.basics.records import dataclass
from eastgate.controller.admission.semantic.concerning import Concerns
from eastgate.controller.admission.semantic.model import (
    ChangeJudgement,
    Deadline,
    InvariantStanding,
    ObjectChange,
    Standings,
)
from eastgate.controller.admission.semantic.refusing import refusal_of, unproven_of
from eastgate.controller.admission.semantic.shadow import Shadows, copy_of
from eastgate.controller.admission.semantic.words import limited, line, warnings_of
from eastgate.ir import PolicyRef
from eastgate.reach.comparison import AuthorityComparison, DoubtReason
from eastgate.reach.differences import compare_pairs, pair_authorities
from eastgate.reading.manifests.document import content_of
from eastgate.reports.diff.run import report_of
from eastgate.reports.invariants.breaking import BreachHunt, named_callers
from eastgate.reports.invariants.objects import (
    InvariantError,
    InvariantObject,
    OnNotProven,
    StatementStanding,
    is_invariant,
    read_invariant,
)
from eastgate.reports.invariants.proving import prove
from eastgate.reports.invariants.selecting import changed_targets

_MAX_BACKLOG = 256  # updates that may wait while nothing is judged
_MANY_WORKLOADS = 1_000  # with more of them, unchanged network policies are not evaluated
_SEARCH_SHARE, _COMPARE_SHARE = 0.5, 0.8  # of the time: first for Invariants, then for warnings, the rest for both


@dataclass(frozen=True, slots=True)
class FollowedUpdate:
    """A change that was stored: the objects that it put and removed, including Invariants."""

    put: Manifests
    remove: tuple[PolicyRef, ...]
    invariants: Mapping[PolicyRef, InvariantObject | None]

    @property
    def is_of_policies(self) -> bool:
        """Return whether the update may change policies, which may be large. Pods and Services have no API group."""
        return bool(self.put.policies) or any(ref.group for ref in self.remove)


class _Follower:
    """A copy that follows updates: they are queued, and applied before each judgement."""

    def __init__(self, invariants: Iterable[InvariantObject]) -> None:
        self._invariants = {invariant.ref: invariant for invariant in invariants}
        self._updates: deque[FollowedUpdate] = deque()
        self._lock = Lock()
        self._failure: Exception | None = None

    def take(self, update: FollowedUpdate) -> bool:
        """Queue an update; return whether to apply the queue now, even without a judgement."""
        self._updates.append(update)
        return update.is_of_policies or len(self._updates) % _MAX_BACKLOG == 0

    def follow(self) -> None:
        """Apply the queued updates."""
        with self._lock:
            self._catch_up()

    def _catch_up(self) -> None:
        """Apply the queued updates. After a failed update, the copy judges nothing any more."""
        if self._failure is not None:
            raise RuntimeError("an earlier change could not be applied") from self._failure
        while self._updates:
            update = self._updates.popleft()
            try:
                self._apply(update.put, list(update.remove))
            except Exception as error:
                self._failure = error
                raise
            for ref, invariant in update.invariants.items():
                if invariant is None:
                    self._invariants.pop(ref, None)
                else:
                    self._invariants[ref] = invariant

    def _apply(self, put: Manifests, remove: list[PolicyRef]) -> None:
        raise NotImplementedError


class StandingCopy(_Follower):
    """The copy that evaluates the Invariants of the current state. This takes long, and must not delay changes."""

    def __init__(self, authority: Authority, invariants: Iterable[InvariantObject]) -> None:
        super().__init__(invariants)
        self._authority = copy_of(authority)
        self._standings = Standings()

    def _apply(self, put: Manifests, remove: list[PolicyRef]) -> None:
        self._authority.update(put, remove)

    def evaluate(self) -> list[InvariantStanding]:
        with self._lock:
            self._catch_up()
            return self._standings.evaluate(self._invariants.values(), self._authority)


class JudgingCopies(_Follower):
    """The copies of one thread, which judges one change at a time."""

    def __init__(
        self, authority: Authority, invariants: Iterable[InvariantObject], budget: float | None, concerns: Concerns
    ) -> None:
        super().__init__(invariants)
        self._shadows = Shadows(authority)
        self._budget = budget
        self._concerns = concerns

    def _apply(self, put: Manifests, remove: list[PolicyRef]) -> None:
        self._shadows.follow(put, remove)

    def judge(self, change: ObjectChange) -> ChangeJudgement:
        with self._lock:
            self._catch_up()
            if change.put is not None and is_invariant(change.put):
                return self._judge_invariant(change.put)
            try:
                return self._judge(change)
            except ManifestError as error:
                return self._undetermined(change, f"it cannot be read: {error.diagnostics[0].message}")

    def _judge_invariant(self, document: Mapping[str, Any]) -> ChangeJudgement:
        """Validate an Invariant, and warn if it does not hold now."""
        if errors := errors_of(ObjectChange.of(document)):
            return ChangeJudgement(refusals=errors)
        invariant = read_invariant(document)
        standing = InvariantStanding(invariant, prove(self._shadows.old, invariant.statement))
        holds = standing.finding.standing is StatementStanding.HOLDS
        return ChangeJudgement(() if holds else (line(f"it does not hold now: {standing.message}"),))

    def _undetermined(self, change: ObjectChange, why: str) -> ChangeJudgement:
        """Return the judgement of a change that cannot be compared. Invariants about the change may refuse it."""
        warning = line(f"not proven: the openings of this change are unknown: {why}")
        refusing = [each for each in self._concerns.about(change) if each.on_not_proven is OnNotProven.REFUSE]
        return ChangeJudgement((warning,), tuple(unproven_of(each, why) for each in refusing), determined=False)

    def _judge(self, change: ObjectChange) -> ChangeJudgement:
        searching, comparing, deadline = (
            Deadline(share * self._budget if self._budget else None) for share in (_SEARCH_SHARE, _COMPARE_SHARE, 1)
        )
        with self._shadows.changed(change) as among:
            invariants = sorted(self._invariants.values(), key=lambda each: _search_rank(each, change))
            statements = [invariant.statement for invariant in invariants]
            known, namespaces = named_callers(statements, self._shadows.new)
            paired = pair_authorities(
                self._shadows.old,
                self._shadows.new,
                among,
                known=known,
                namespaces=namespaces,
                is_late=searching.is_past,
                skips_network=len(self._shadows.new.world.workloads) > _MANY_WORKLOADS,
            )
            targets = changed_targets(paired)
            hunts = [(each, BreachHunt(paired, each.statement, targets, searching.is_past)) for each in invariants]
            for _, hunt in hunts:
                hunt.search()
            broken = [(each, example) for each, hunt in hunts if (example := hunt.counterexample) is not None]
            if broken:  # a refused change needs no warnings
                return ChangeJudgement(refusals=tuple(refusal_of(each, example) for each, example in broken))
            comparison = compare_pairs(paired, is_late=comparing.is_past)
            report = report_of(_about_change(comparison), unread=False)
            unread = list(self._unread())
            breaches = [(each, hunt.conclude(comparison, deadline.is_past)) for each, hunt in hunts]
        refusals: list[str] = []
        doubts: list[str] = []
        concerned = {each.ref for each in self._concerns.about(change)}
        for invariant, breach in breaches:
            if breach.counterexample is not None:
                refusals.append(refusal_of(invariant, breach.counterexample))
            elif not breach.is_about_destinations and invariant.ref not in concerned:
                continue  # unknown, but the Invariant is not about the change
            elif breach.doubt is not None and invariant.on_not_proven is OnNotProven.REFUSE:
                refusals.append(unproven_of(invariant, breach.doubt))
            elif breach.doubt is not None:
                doubts.append(f"{invariant.ref}: {breach.doubt}")
        warnings = warnings_of(report, self._shadows.new.world, [*doubts, *unread])
        return ChangeJudgement(
            limited(warnings), tuple(refusals), determined=report.proven and not unread and not doubts
        )

    def _unread(self) -> Iterator[str]:
        """Yield the objects of unread kinds that the change puts or removes."""
        before, after = (
            {str(unread): content_of(unread.document) for unread in side.unread_objects.objects}
            for side in (self._shadows.old, self._shadows.new)
        )
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                yield f"{name} is of a kind that is not read"


def _search_rank(invariant: InvariantObject, change: ObjectChange) -> int:
    """Return the rank of an Invariant in the search: the many Invariants of one namespace must not take time from
    others.

    Invariants of the cluster come first, then those of the namespace of the change, then the others.
    """
    home = invariant.ref.namespace
    return 0 if home is None else 1 if home == change.ref.namespace else 2


def errors_of(change: ObjectChange) -> tuple[str, ...]:
    """Return the errors of an Invariant by itself."""
    try:
        if change.put is not None:
            read_invariant(change.put)
    except InvariantError as error:
        return tuple(diagnostic.message for diagnostic in error.diagnostics)
    return ()


def _about_change(comparison: AuthorityComparison) -> AuthorityComparison:
    """Return a comparison without the doubts that exist with and without the change.

    A policy with errors that stays the same closes the same on both sides, and in enforcement.
    """
    before, after = _rejected(comparison.old), _rejected(comparison.new)
    kept = frozenset(name for name, policy in before.items() if after.get(name) is policy)
    doubts = [
        doubt for doubt in comparison.doubts if doubt.reason is not DoubtReason.REJECTED or doubt.subject not in kept
    ]
    return AuthorityComparison(
        comparison.old,
        comparison.new,
        comparison.pairing,
        comparison.callers,
        comparison.differences,
        tuple(doubts),
    )


def _rejected(authority: Authority) -> dict[str, object]:
    return {str(policy.ref): policy for policy in authority.rejected}
