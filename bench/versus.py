"""The engine and Cedar, asked the same questions in turns; every pair of answers is compared."""

from __future__ import annotations

from collections.abc import Sequence

from cedarpy import is_authorized

from bench.built import Built, check_reference
from bench.peers import cedar
from bench.plans import Ask
from bench.timing import Turns

__all__ = ["CEDAR_IN_A_ROW", "IN_A_ROW", "Versus"]

# Each side is asked several times in a row, because the first time it finds the caches full of the other's things;
# ours more often, because one of Cedar's takes a hundred times as long.
IN_A_ROW = 10
CEDAR_IN_A_ROW = 3

_REFERENCE = 300  # questions that the reference evaluator is asked too


class Versus:
    """One comparison. Cedar is asked only the first few questions (`for_cedar`) where it would take minutes."""

    def __init__(self, built: Built, asks: Sequence[Ask], for_cedar: int | None = None) -> None:
        """Build every request, and compare the answers."""
        decide, program_of = built.engine.decide, built.engine.program
        chosen = asks[:for_cedar]
        questions = built.questions(asks)
        entities = cedar.entities_of(chosen)
        sets = {workload: cedar.policy_set(built.plans_on(workload)) for workload in {ask.workload for ask in chosen}}
        requests = [(cedar.request_of(ask), sets[ask.workload]) for ask in chosen]

        answers = [bool(decide(workload, request) & 1) for workload, request in questions]
        for answer, (request, policies), ask in zip(answers, requests, asks, strict=False):
            if cedar.allowed(request, policies, entities) != answer:
                raise AssertionError(f"Cedar does not say {answer} of {ask}")
        check_reference(built.engine, questions[:_REFERENCE])

        def verdicts() -> None:
            for workload, request in questions:
                decide(workload, request)

        def outcomes() -> None:
            for workload, request in questions:
                program = program_of(workload)
                program.outcome(program.decide(request))

        def cedars() -> None:
            for request, policies in requests:
                is_authorized(request, policies, entities)

        self._questions, self._requests = len(questions), len(requests)
        self._turns = Turns(*[verdicts] * IN_A_ROW, outcomes, outcomes, *[cedars] * CEDAR_IN_A_ROW)
        self.rounds = 0
        self.allowed = sum(answers) / len(answers)

    def take(self, rounds: int = 1) -> None:
        """Ask both again."""
        self.rounds += rounds
        self._turns.take(rounds)

    @property
    def verdict(self) -> float:
        """Nanoseconds to allow or deny."""
        return min(self._turns.least[:IN_A_ROW]) / self._questions * 1e9

    @property
    def outcome(self) -> float:
        """Nanoseconds to say who decided, too."""
        return min(self._turns.least[IN_A_ROW:-CEDAR_IN_A_ROW]) / self._questions * 1e9

    @property
    def cedar(self) -> float:
        """Nanoseconds of Cedar, which says both."""
        return min(self._turns.least[-CEDAR_IN_A_ROW:]) / self._requests * 1e9

    @property
    def ratio(self) -> float:
        """How many of our verdicts cost as much as one of Cedar's."""
        return self.cedar / self.verdict
