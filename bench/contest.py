"""Everybody, asked the same questions about one world; every answer is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.built import Built, check_reference
from bench.lanes import ALL, OURS, OWN, Budget, Lane, peer_lane
from bench.peers.base import Peer
from bench.plans import Ask

__all__ = ["Contest", "Smaller"]

# How many questions the reference evaluator is asked too: it looks at every policy on a point, so fewer of many.
_REFERENCE = 300
_REFERENCE_LEAST = 30
_REFERENCE_LOOKS = 100_000

Smaller = Mapping[tuple[str, str], Lane]


class Contest:
    """One world. `smaller` are the lanes of the next smaller one, by engine and case."""

    def __init__(
        self,
        built: Built,
        asks: Sequence[Ask],
        peers: Sequence[Peer],
        budget: Budget,
        smaller: Smaller | None = None,
        cases: Sequence[str] = (OWN, ALL),
    ) -> None:
        """Ask everybody once, and compare."""
        decide, program_of = built.engine.decide, built.engine.program
        questions = built.questions(asks)
        answers = [bool(decide(point, request) & 1) for point, request in questions]
        each = max(1, len(built.policies) // len(built.points))
        checked = check_reference(
            built.engine, questions[: max(_REFERENCE_LEAST, min(_REFERENCE, _REFERENCE_LOOKS // each))]
        )

        few = questions[: budget.asks]

        def verdicts() -> None:
            for point, request in questions:
                decide(point, request)

        def same() -> None:
            for point, request in few:
                decide(point, request)

        def rules() -> None:
            for point, request in questions:
                program = program_of(point)
                program.outcome(program.decide(request))

        self.built = built
        self.allowed = sum(answers) / len(answers)
        self.verdict = self._ours("verdict", verdicts, len(asks), checked)
        self.same = self._ours("same", same, len(few), checked)
        self.rule = self._ours("rule", rules, len(asks), checked)
        before = smaller or {}
        self.peers: dict[tuple[str, str], Lane] = {
            (peer.name, case): peer_lane(peer, case, built, asks, answers, budget, before.get((peer.name, case)))
            for peer in peers
            for case in cases
        }

    def _ours(self, case: str, work: Callable[[], object], asked: int, checked: int) -> Lane:
        return Lane(OURS, case, len(self.built.policies), asked, checked, self.built.seconds, work=work)

    def take(self, rounds: int = 1) -> None:
        """Ask everybody again, in turns."""
        for _ in range(rounds):
            for lane in self:
                lane.take()

    def __iter__(self) -> Iterator[Lane]:
        yield self.verdict
        yield self.same
        yield self.rule
        yield from self.peers.values()

    def told(self) -> list[dict[str, object]]:
        """For machines."""
        return [lane.told(self.verdict.ns, self.same.ns) for lane in self]
