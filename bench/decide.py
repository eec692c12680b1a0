"""What a decision costs as a world grows, against Cedar."""

from __future__ import annotations

from bench.built import Built
from bench.peers import cedar
from bench.report import Section, Target
from bench.versus import CEDAR_IN_A_ROW, IN_A_ROW, Versus
from bench.worlds import ask_some

__all__ = ["SIZES", "Decide"]

SIZES = (10, 100, 1_000, 10_000, 100_000)

_RATIO = 80  # times Cedar, at 1,000 policies
_GROWTH = 6  # from the smallest to the largest world


class Decide:
    """Worlds of all sizes, smaller ones first.

    Each is measured when it is new, while there is little else in memory, which serves Cedar well; and again later in
    turns with the others, so that no busy minute of the machine spoils all rounds of the large ones.
    """

    def __init__(self, *, quick: bool) -> None:
        self._asks, self._first_rounds, self._later_rounds = (2_000, 3, 1) if quick else (10_000, 5, 2)
        self._versus: list[Versus] = []
        self.worlds: list[Built] = []

    def add(self, built: Built) -> None:
        """Ask in a new world."""
        versus = Versus(built, ask_some(built.plan, built.targeted, self._asks))
        versus.take(self._first_rounds)
        self.worlds.append(built)
        self._versus.append(versus)

    def again(self) -> None:
        """Ask in all worlds, in turns."""
        for _ in range(self._later_rounds):
            for versus in self._versus:
                versus.take()

    def conclude(self) -> Section:
        """The table, with its targets."""
        sizes = [len(built.policies) for built in self.worlds]
        first, last = self._versus[0].verdict, self._versus[-1].verdict
        ratio = self._versus[sizes.index(1_000)].ratio
        return Section(
            "A decision, as the world grows",
            f"CPU ns per decision: the least of {self._versus[0].rounds} rounds in turns with {cedar.version()} (Cedar "
            f"{CEDAR_IN_A_ROW} times in a row, then ours {IN_A_ROW} times), spread over the run, over the same "
            f"{self._asks:,} prebuilt questions about random workloads; every answer compared. "
            "Cedar is given only the asked workload's policies, parsed, and parsed entities. verdict: engine.decide, "
            "allow or deny and a number for the reason. +who: with the rule that decided, as Cedar tells. Worlds are "
            "built as objects, not read from manifests; identities in requests are not the very strings of policies.",
            ("policies", "pods", "classes", "allowed", "verdict ns", "+who ns", "Cedar ns", "times", "growth"),
            [
                [
                    len(built.policies), len(built.world.workloads), built.classes, f"{one.allowed:.0%}",
                    one.verdict, one.outcome, one.cedar, one.ratio, one.verdict / first,
                ]
                for built, one in zip(self.worlds, self._versus, strict=True)
            ],
            [
                Target(f"at least {_RATIO} times Cedar at 1,000 policies", f"{ratio:.0f} times", ratio >= _RATIO),
                Target(
                    f"cost grows less than {_GROWTH} times from {sizes[0]:,} to {sizes[-1]:,} policies",
                    f"{last / first:.1f} times",
                    last / first < _GROWTH,
                ),
            ],
        )  # fmt: skip
