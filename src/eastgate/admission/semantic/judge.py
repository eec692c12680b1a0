"""The judge: compares the authority as it is with the one that a change would make, in copies of its own.

What is enforced is never touched. Updates are queued by whoever makes them, and taken over by the thread that judges.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

from eastgate.admission.semantic.deadline import Deadline
from eastgate.admission.semantic.model import ChangeJudgement, ObjectChange
from eastgate.admission.semantic.refusing import refusal_of, unproven_of
from eastgate.admission.semantic.shadow import Shadows
from eastgate.admission.semantic.standing import InvariantStanding, Standings
from eastgate.admission.semantic.words import limited, line, warnings_of
from eastgate.api.authority import Authority
from eastgate.api.reading import ManifestError, Manifests, read_plain
from eastgate.ir import PolicyRef
from eastgate.manifests.document import content_of
from eastgate.reach.differences import AuthorityComparison, DoubtReason, compare
from eastgate.records import dataclass
from eastgate.reports.diff.run import report_of
from eastgate.reports.invariants.breaking import changed_targets, find_breach, named_callers
from eastgate.reports.invariants.objects import (
    InvariantError,
    InvariantObject,
    OnNotProven,
    is_invariant,
    read_invariant,
)
from eastgate.reports.invariants.proving import StatementStanding, prove

__all__ = ["Judge", "judge"]

_BUDGET = 2.0  # seconds for a judgement, of the ten that an API server waits
_MANY = 1_000  # workloads, of which the network is not worked out where it stays the same
_COMPARING = 0.6  # the share of it that is for what exists; the rest is for Invariants


@dataclass(frozen=True, slots=True)
class _FollowedUpdate:
    """A change that was made: what was put and what was removed, Invariants among it."""

    put: Manifests
    remove: tuple[PolicyRef, ...]
    invariants: Mapping[PolicyRef, InvariantObject | None]


def judge(
    authority: Authority,
    change: ObjectChange,
    invariants: Iterable[InvariantObject] = (),
    *,
    budget: float | None = None,
) -> ChangeJudgement:
    """Judge one change of an authority, which stays as it is. Who judges many changes keeps a `Judge`."""
    return Judge(authority, invariants, budget=budget).judge(change)


class Judge:
    """Judges changes, one at a time. Its copies of the authority follow the updates that it is given.

    `update` may be called from any thread, and returns at once. `judge` takes as long as it takes, up to the budget and
    a little more; `judge_in_thread` is for an event loop.
    """

    def __init__(
        self, authority: Authority, invariants: Iterable[InvariantObject] = (), *, budget: float | None = _BUDGET
    ) -> None:
        """Copy an authority. `budget`: seconds after which what is not determined stays so; None: no limit."""
        self._shadows = Shadows(authority)
        self._invariants = {invariant.ref: invariant for invariant in invariants}
        self._budget = budget
        self._updates: deque[_FollowedUpdate] = deque()
        self._standings = Standings()
        self._lock = Lock()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="judge")

    def close(self) -> None:
        """End the thread that judges."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    # Following

    def update(
        self, put: Manifests | Iterable[Mapping[str, Any]] = (), remove: Iterable[PolicyRef] = ()
    ) -> list[InvariantError]:
        """Follow a change that was made; return the errors of Invariants, which do not count.

        Manifests are shared with whoever has read them, and have no Invariants.
        """
        given = [] if isinstance(put, Manifests) else list(put)
        errors: list[InvariantError] = []
        invariants: dict[PolicyRef, InvariantObject | None] = dict.fromkeys(remove)
        for document in filter(is_invariant, given):
            try:
                invariant = read_invariant(document)
                invariants[invariant.ref] = invariant
            except InvariantError as error:
                invariants[ObjectChange.of(document).ref] = None
                errors.append(error)
        others = [document for document in given if not is_invariant(document)]
        news = put if isinstance(put, Manifests) else read_plain(others, self._shadows.old.settings)
        self._updates.append(_FollowedUpdate(news, tuple(remove), invariants))
        return errors

    def _catch_up(self) -> None:
        while self._updates:
            update = self._updates.popleft()
            self._shadows.follow(update.put, list(update.remove))
            for ref, invariant in update.invariants.items():
                if invariant is None:
                    self._invariants.pop(ref, None)
                else:
                    self._invariants[ref] = invariant

    def evaluate(self) -> list[InvariantStanding]:
        """Find out what holds of all Invariants now."""
        with self._lock:
            self._catch_up()
            return self._standings.evaluate(self._invariants.values(), self._shadows.old)

    # Judging

    async def judge_in_thread(self, change: ObjectChange) -> ChangeJudgement:
        """Judge a change beside an event loop. Where it takes too long, the judgement is that nothing is known."""
        running = asyncio.get_running_loop().run_in_executor(self._executor, self.judge, change)
        try:
            return await asyncio.wait_for(asyncio.shield(running), None if self._budget is None else self._budget * 2)
        except TimeoutError:
            return self._undetermined("there was no time left to compare it")

    def judge(self, change: ObjectChange) -> ChangeJudgement:
        """Say what a change opens and closes, and refuse it where it breaks an Invariant."""
        with self._lock:
            self._catch_up()
            if change.put is not None and is_invariant(change.put):
                return self._judge_invariant(change.put)
            try:
                return self._judge(change)
            except ManifestError as error:
                return self._undetermined(f"it cannot be read: {error.diagnostics[0].message}")

    def _judge_invariant(self, document: Mapping[str, Any]) -> ChangeJudgement:
        """Validate an Invariant, and warn where it does not hold as things are."""
        try:
            invariant = read_invariant(document)
        except InvariantError as error:
            return ChangeJudgement(refusals=tuple(diagnostic.message for diagnostic in error.diagnostics))
        standing = InvariantStanding(invariant, prove(self._shadows.old, invariant.statement))
        holds = standing.finding.standing is StatementStanding.HOLDS
        return ChangeJudgement(() if holds else (line(f"it does not hold now: {standing.message}"),))

    def _undetermined(self, why: str) -> ChangeJudgement:
        """Return the judgement where nothing is known; Invariants may refuse for that."""
        warning = line(f"not proven: what this opens is not determined: {why}")
        refusing = [each for each in self._invariants.values() if each.on_not_proven is OnNotProven.REFUSE]
        return ChangeJudgement((warning,), tuple(unproven_of(each, why) for each in refusing), determined=False)

    def _judge(self, change: ObjectChange) -> ChangeJudgement:
        comparing, deadline = (Deadline(share * self._budget if self._budget else None) for share in (_COMPARING, 1))
        with self._shadows.changed(change) as among:
            statements = [invariant.statement for invariant in self._invariants.values()]
            known, namespaces = named_callers(statements, self._shadows.new)
            comparison = compare(
                self._shadows.old,
                self._shadows.new,
                among,
                known=known,
                namespaces=namespaces,
                is_late=comparing.is_past,
                skips_network=len(self._shadows.new.world.workloads) > _MANY,
            )
            report = report_of(_about_change(comparison), unread=False)
            unread = list(self._unread())
            targets = changed_targets(comparison)
            breaches = [
                (each, find_breach(comparison, each.statement, targets, deadline.is_past))
                for each in self._invariants.values()
            ]
        refusals: list[str] = []
        doubts: list[str] = []
        for invariant, breach in breaches:
            if breach.counterexample is not None:
                refusals.append(refusal_of(invariant, breach.counterexample))
            elif breach.doubt is not None and invariant.on_not_proven is OnNotProven.REFUSE:
                refusals.append(unproven_of(invariant, breach.doubt))
            elif breach.doubt is not None:
                doubts.append(f"{invariant.ref}: {breach.doubt}")
        warnings = warnings_of(report, self._shadows.new.world, [*doubts, *unread])
        return ChangeJudgement(limited(warnings), tuple(refusals), determined=report.proven and not unread)

    def _unread(self) -> Iterator[str]:
        """Yield what the change puts or removes that is of a kind which is not read."""
        before, after = (
            {str(unread): content_of(unread.document) for unread in side.unread_objects.objects}
            for side in (self._shadows.old, self._shadows.new)
        )
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                yield f"{name} is of a kind that is not read"


def _about_change(comparison: AuthorityComparison) -> AuthorityComparison:
    """Return a comparison without the doubts that are the same with the change and without it.

    A policy with errors that is the same on both sides closes the same on both, as it does where it is enforced.
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
