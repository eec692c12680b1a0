"""The engine and Cedar, asked the same questions in turns; every pair of answers is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cedarpy import is_authorized

from bench.built import Built, check_reference
from bench.peers import cedar
from bench.plans import Ask
from bench.timing import interleaved

__all__ = ["Versus", "versus"]

_REFERENCE = 300  # questions that the reference evaluator is asked too


@dataclass(frozen=True, slots=True)
class Versus:
    """Nanoseconds of a decision: the verdict, the verdict with who decided, and Cedar's."""

    verdict: float
    outcome: float
    cedar: float
    allowed: float

    @property
    def ratio(self) -> float:
        return self.cedar / self.verdict


def versus(built: Built, asks: Sequence[Ask], rounds: int, for_cedar: int | None = None) -> Versus:
    """Ask both. Cedar is asked only the first few where it would take minutes."""
    engine, decide, program_of = built.engine, built.engine.decide, built.engine.program
    questions = built.questions(asks)
    chosen = asks[:for_cedar]
    entities = cedar.entities_of(chosen)
    sets = {workload: cedar.policy_set(built.plans_on(workload)) for workload in {ask.workload for ask in chosen}}
    requests = [(cedar.request_of(ask), sets[ask.workload]) for ask in chosen]

    answers = [bool(decide(workload, request) & 1) for workload, request in questions]
    for answer, (request, policies), ask in zip(answers, requests, asks, strict=False):
        if cedar.allowed(request, policies, entities) != answer:
            raise AssertionError(f"Cedar does not say {answer} of {ask}")
    check_reference(engine, questions[:_REFERENCE])

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

    # Cedar's turn takes a hundred times as long and leaves our tables cold: ours comes three times in a row.
    *verdict, outcome, theirs = interleaved(rounds, verdicts, verdicts, verdicts, outcomes, cedars)
    return Versus(
        min(verdict) / len(questions) * 1e9,
        outcome / len(questions) * 1e9,
        theirs / len(requests) * 1e9,
        sum(answers) / len(answers),
    )
