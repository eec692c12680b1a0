"""All engines, with the same questions about one world. Every answer is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.built import Built, check_reference
from bench.lanes import ALL, OURS, OWN, Budget, Lane, peer_lane
from bench.peers.base import Peer
from bench.plans import Ask

__all__ = ["Contest", "Smaller"]

# Questions for the reference evaluator. It reads every policy of a point, so it gets fewer where there are many.
_MAX_REFERENCE_QUESTIONS = 300
_MIN_REFERENCE_QUESTIONS = 30
_MAX_POLICY_COMPARISONS = 100_000

Smaller = Mapping[tuple[str, str], Lane]


class Contest:
    """The comparison of all engines in one world. `smaller` has the lanes of the next smaller world."""

    def __init__(
        self,
        built: Built,
        asks: Sequence[Ask],
        peers: Sequence[Peer],
        budget: Budget,
        smaller: Smaller | None = None,
        cases: Sequence[str] = (OWN, ALL),
    ) -> None:
        """Ask every engine once, and compare the answers."""
        decide, program_of = built.engine.decide, built.engine.program
        questions = built.questions(asks)
        answers = [bool(decide(point, request) & 1) for point, request in questions]
        each = max(1, len(built.policies) // len(built.points))
        checked = check_reference(
            built.engine,
            questions[: max(_MIN_REFERENCE_QUESTIONS, min(_MAX_REFERENCE_QUESTIONS, _MAX_POLICY_COMPARISONS // each))],
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
        """Measure every engine again, in turns."""
        for _ in range(rounds):
            for lane in self:
                lane.take()

    def __iter__(self) -> Iterator[Lane]:
        yield self.verdict
        yield self.same
        yield self.rule
        yield from self.peers.values()

    def points(self) -> list[dict[str, object]]:
        """Return the numbers of every lane for the JSON."""
        return [lane.point(self.verdict.ns, self.same.ns) for lane in self]
