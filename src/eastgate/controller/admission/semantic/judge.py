"""The judge: it compares the current authority with the authority after a change, in its own copies.

Enforcement is never touched. Updates are queued, and the judging thread applies them. Each thread has its own copies,
so that a slow change delays others as little as possible.
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
from eastgate.controller.admission.semantic.bench import FollowedUpdate, JudgingCopies, StandingCopy, errors_of
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
_BUDGET_SECONDS = 2.0  # of work for a judgement; an API server waits ten seconds
_THREADS = 3  # one API server leaves one of them to others, and so does one user
_OWN_CLIENT = ReviewClient()
_OVERLOADED = "the controller is overloaded, and had no time to judge this"


class Judge:
    """The judge of changes, a few at a time. Its copies of the authority follow `update`.

    `update` may be called from any thread, and returns at once. `judge` takes up to the budget and a little more.
    `judge_in_thread` is for an event loop, and serves all clients in turns.
    """

    def __init__(
        self,
        authority: Authority,
        invariants: Iterable[InvariantObject] = (),
        *,
        budget: float | None = _BUDGET_SECONDS,
        is_left_out: Callable[[Mapping[str, Any]], bool] = lambda _: False,
    ) -> None:
        """Copy an authority.

        `budget`: seconds of work for a judgement; the rest stays undetermined. None: no limit. `is_left_out` returns
        whether a policy is not judged, such as a copy that only repeats other policies and would hide their removal.
        """
        invariants = list(invariants)
        self._is_left_out = is_left_out
        self._concerns = Concerns(authority, invariants)
        self._settings = authority.settings
        self._judging = [JudgingCopies(authority, invariants, budget, self._concerns) for _ in range(_THREADS)]
        self._idle: LifoQueue[JudgingCopies] = LifoQueue()
        for judging in self._judging:
            self._idle.put(judging)
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
        """End the judging threads."""
        self._threads.close()

    # Following

    def update(
        self,
        put: Manifests | Iterable[Mapping[str, Any]] = (),
        remove: Iterable[PolicyRef] = (),
        invariants: Iterable[Mapping[str, Any]] = (),
    ) -> list[InvariantError]:
        """Apply a change that was stored; return the errors of Invariants, which are ignored.

        Manifests are shared with their reader, and hold no Invariants: pass these separately.
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
        for follower in (*self._judging, self._standing):
            if follower.take(FollowedUpdate(news, remove, changed)):
                self._threads.submit(_OWN_CLIENT, follower.follow).add_done_callback(_log_failure)
        return errors

    def evaluate(self) -> list[InvariantStanding]:
        """Return the standing of all Invariants now. It delays no change."""
        return self._standing.evaluate()

    # Judging

    async def judge_in_thread(self, change: ObjectChange, client: ReviewClient = _OWN_CLIENT) -> ChangeJudgement:
        """Judge a change in a thread, in the turn of its client. A change that is cancelled before is not judged."""
        if change.put is None and change.ref.group == GROUP and change.ref.kind in INVARIANTS:
            return ChangeJudgement()  # removing an Invariant opens nothing, and must be possible in an emergency
        return await asyncio.wrap_future(self._threads.submit(client, partial(self.judge, change)))

    def judge(self, change: ObjectChange) -> ChangeJudgement:
        """Return the openings and closings of a change as warnings, and the Invariants that it breaks as refusals."""
        new, old = change.put, change.old
        if new is not None and old is not None and self._is_left_out(new) and not self._is_left_out(old):
            change = ObjectChange(change.ref, None, old)  # the writer of copies removes a copy without an original
        judging = self._idle.get()
        try:
            return judging.judge(change)
        finally:
            self._idle.put(judging)

    def refuse_unjudged(self, change: ObjectChange) -> ChangeJudgement:
        """Return the judgement of a change after its time has run out: the Invariants that are about it refuse it.

        This differs from "not proven": a second try may succeed.
        """
        if change.ref.group == GROUP and change.ref.kind in INVARIANTS:
            refusals = errors_of(change)
        else:
            refusals = tuple(map(overloaded_of, self._concerns.about(change)))
        return ChangeJudgement((line(f"not proven: {_OVERLOADED}"),), refusals, determined=False)


def _log_failure(followed: Future[None]) -> None:
    if not followed.cancelled() and (error := followed.exception()) is not None:
        _LOG.error(
            "a change could not be applied to the copies of the judge, and no change can be judged", exc_info=error
        )
