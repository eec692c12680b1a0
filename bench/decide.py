"""What a decision costs as a world grows, against Cedar."""

from __future__ import annotations

from bench.built import Built
from bench.peers import cedar
from bench.report import Section, Target
from bench.versus import Versus, versus
from bench.worlds import ask_some

__all__ = ["SIZES", "Decide"]

SIZES = (10, 100, 1_000, 10_000, 100_000)

_RATIO = 80  # times Cedar, at 1,000 policies
_GROWTH = 6  # from the smallest to the largest world


class Decide:
    """Collects one row for each world."""

    def __init__(self, *, quick: bool) -> None:
        self._asks, self._rounds = (2_000, 3) if quick else (10_000, 7)
        self._found: dict[int, Versus] = {}
        self.section = Section(
            "A decision, as the world grows",
            f"CPU ns per decision, least of {self._rounds} rounds in turns with {cedar.version()}, over the same "
            f"{self._asks:,} prebuilt questions about random workloads; every answer compared. Cedar is given only "
            "the asked workload's policies, parsed, and parsed entities. verdict: engine.decide, allow or deny and a "
            "number for the reason. +who: with the rule that decided, as Cedar tells. Worlds are built as objects, "
            "not read from manifests; identities in requests are not the very strings of the policies.",
            ("policies", "pods", "classes", "allowed", "verdict ns", "+who ns", "Cedar ns", "times", "growth"),
        )

    def add(self, built: Built) -> None:
        """Measure one world; smaller ones come first."""
        found = versus(built, ask_some(built.plan, built.targeted, self._asks), self._rounds)
        self._found[len(built.policies)] = found
        pods = len(built.world.workloads)
        self.section.rows.append(
            [
                len(built.policies), pods, built.classes, f"{found.allowed:.0%}",
                found.verdict, found.outcome, found.cedar, found.ratio, found.verdict / self._first.verdict,
            ]
        )  # fmt: skip

    @property
    def _first(self) -> Versus:
        return next(iter(self._found.values()))

    def conclude(self) -> Section:
        """The table, with its targets."""
        sizes = list(self._found)
        ratio = self._found[1_000].ratio
        growth = self._found[sizes[-1]].verdict / self._first.verdict
        self.section.targets = [
            Target(f"at least {_RATIO} times Cedar at 1,000 policies", f"{ratio:.0f} times", ratio >= _RATIO),
            Target(
                f"cost grows less than {_GROWTH} times from {sizes[0]:,} to {sizes[-1]:,} policies",
                f"{growth:.1f} times",
                growth < _GROWTH,
            ),
        ]
        return self.section
