"""The judge: compares the authority as it is with the one that a change would make, in copies of its own.

What is enforced is never touched. Updates are queued by whoever makes them, and taken over by the thread that judges.
A thread has copies for itself, so that a change which takes long keeps others waiting no longer than it must.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from queue import LifoQueue
from typing import Any

from eastgate.authority.authority import Authority
from eastgate.authority.reading import Manifests, read_plain
from eastgate.controller.admission.semantic.bench import Bench, FollowedUpdate, StandingCopy, errors_of
from eastgate.controller.admission.semantic.concerning import Concerns
from eastgate.controller.admission.semantic.model import (
    ChangeJudgement,
    InvariantStanding,
    ObjectChange,
)
from eastgate.controller.admission.semantic.refusing import overloaded_of
from eastgate.controller.admission.semantic.words import line
from eastgate.controller.admission.turns import FairThreads, ReviewClient
from eastgate.dialects import Policy
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.document import content_of
from eastgate.reports.invariants.objects import (
    GROUP,
    InvariantError,
    InvariantObject,
    is_invariant,
    read_invariant,
)
from eastgate.reports.invariants.shapes import KINDS as INVARIANTS

_LOG = logging.getLogger(__name__)
_BUDGET = 2.0  # seconds of work for a judgement, of the ten that an API server waits
_THREADS = 3  # of which an API server leaves one to others, and one of its users one to the others
_OURSELVES = ReviewClient()
_OVERLOADED = "the controller is overloaded, and had no time to judge this"


class Judge:
    """Judges changes, a few at a time. Its copies of the authority follow the updates that it is given.

    `update` may be called from any thread, and returns at once. `judge` takes as long as it takes, up to the budget and
    a little more; `judge_in_thread` is for an event loop, and judges the changes of all clients in turns.
    """

    def __init__(
        self,
        authority: Authority,
        invariants: Iterable[InvariantObject] = (),
        *,
        budget: float | None = _BUDGET,
        is_left_out: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    ) -> None:
        """Copy an authority.

        `budget`: seconds of work after which what is not determined stays so; None: no limit. `is_left_out`: whether a
        policy is no part of what is judged, such as one that only repeats others and hides that they are gone.
        """
        invariants = list(invariants)
        self._is_left_out = is_left_out
        self._concerns = Concerns(authority, invariants)
        self._settings = authority.settings
        self._benches = [Bench(authority, invariants, budget, self._concerns) for _ in range(_THREADS)]
        self._idle: LifoQueue[Bench] = LifoQueue()
        for bench in self._benches:
            self._idle.put(bench)
        self._standing = StandingCopy(authority, invariants)
        self._threads = FairThreads(_THREADS, "judge")
        if copies := self._left_out(authority.policies, authority.document_of):
            self.update(remove=copies)

    def _left_out(
        self, policies: Iterable[Policy], document_of: Callable[[PolicyRef], Document | None]
    ) -> list[PolicyRef]:
        documents = ((policy.ref, document_of(policy.ref)) for policy in policies)
        read = ((ref, content_of(document)) for ref, document in documents if document is not None)
        return [ref for ref, content in read if isinstance(content, dict) and self._is_left_out(content)]

    def close(self) -> None:
        """End the threads that judge."""
        self._threads.close()

    # Following

    def update(
        self,
        put: Manifests | Iterable[Mapping[str, Any]] = (),
        remove: Iterable[PolicyRef] = (),
        invariants: Iterable[Mapping[str, Any]] = (),
    ) -> list[InvariantError]:
        """Follow a change that was made; return the errors of Invariants, which do not count.

        Manifests are shared with whoever has read them, and have no Invariants: these are given beside them.
        """
        given = [*invariants, *(() if isinstance(put, Manifests) else put)]
        remove = tuple(remove)
        errors: list[InvariantError] = []
        changed: dict[PolicyRef, InvariantObject | None] = dict.fromkeys(remove)
        for document in filter(is_invariant, given):
            try:
                invariant = read_invariant(document)
                changed[invariant.ref] = invariant
            except InvariantError as error:
                changed[ObjectChange.of(document).ref] = None
                errors.append(error)
        others = [document for document in given if not is_invariant(document)]
        news = put if isinstance(put, Manifests) else read_plain(others, self._settings)
        by_ref = {policy.ref: policy for policy in news.policies}
        if copies := self._left_out(news.policies, lambda ref: news.document_of(by_ref[ref])):
            kept = [policy for policy in news.policies if policy.ref not in copies]
            news, remove = replace(news, policies=kept), (*remove, *copies)
        self._concerns.update(news, remove, changed)
        for follower in (*self._benches, self._standing):
            if follower.take(FollowedUpdate(news, remove, changed)):
                self._threads.submit(_OURSELVES, follower.follow).add_done_callback(_log_failure)
        return errors

    def evaluate(self) -> list[InvariantStanding]:
        """Find out what holds of all Invariants now. It keeps no change waiting."""
        return self._standing.evaluate()

    # Judging

    async def judge_in_thread(self, change: ObjectChange, client: ReviewClient = _OURSELVES) -> ChangeJudgement:
        """Judge a change beside an event loop, when it is the turn of its client. If cancelled before, it never is."""
        if change.put is None and change.ref.group == GROUP and change.ref.kind in INVARIANTS:
            return ChangeJudgement()  # it opens nothing, and must be possible in an emergency
        return await asyncio.wrap_future(self._threads.submit(client, partial(self.judge, change)))

    def judge(self, change: ObjectChange) -> ChangeJudgement:
        """Say what a change opens and closes, and refuse it where it breaks an Invariant."""
        new, old = change.put, change.old
        if new is not None and old is not None and self._is_left_out(new) and not self._is_left_out(old):
            change = ObjectChange(change.ref, None, old)  # who writes copies removes one that repeats nothing
        bench = self._idle.get()
        try:
            return bench.judge(change)
        finally:
            self._idle.put(bench)

    def refuse_unjudged(self, change: ObjectChange) -> ChangeJudgement:
        """Return the judgement of a change that there was no time for: whatever Invariants are about it refuse it.

        That is not what is not proven, which a second try would not prove either.
        """
        if change.ref.group == GROUP and change.ref.kind in INVARIANTS:
            refusals = errors_of(change)
        else:
            refusals = tuple(map(overloaded_of, self._concerns.about(change)))
        return ChangeJudgement((line(f"not proven: {_OVERLOADED}"),), refusals, determined=False)


def _log_failure(followed: Future[None]) -> None:
    if not followed.cancelled() and (error := followed.exception()) is not None:
        _LOG.error("a change could not be taken over, and no change can be judged", exc_info=error)
