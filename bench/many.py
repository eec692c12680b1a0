"""What a decision costs where many policies target one workload, against Cedar."""

from __future__ import annotations

from bench.built import Built
from bench.report import Section, Target
from bench.versus import Versus
from bench.worlds import ask_many, crowded

__all__ = ["run"]

_SIZES = {10: 2_000, 100: 2_000, 1_000: 300, 10_000: 30}  # policies, and how many questions Cedar can be asked
_GROWTH = 6


def run(*, quick: bool) -> Section:
    """One row for each number of policies."""
    rounds = 3 if quick else 5
    section = Section(
        "A decision, with many policies on one workload",
        "Measured as decisions in a growing world are, below. All policies target the one workload, each has one rule "
        "with one to four callers and two ports. "
        "Cedar is asked only the first of our 10,000 questions (`asked`), since it looks at each policy.",
        ("policies", "allowed", "verdict ns", "+who ns", "Cedar ns", "asked", "times", "growth", "compile ms"),
    )
    first = 0.0
    growth = 0.0
    for policies, for_cedar in _SIZES.items():
        if quick and policies > 1_000:
            continue
        built = Built.of(crowded(policies))
        asked = min(for_cedar, 300) if quick else for_cedar
        found = Versus(built, ask_many(built.plan, 10_000), asked)
        found.take(rounds)
        first = first or found.verdict
        growth = found.verdict / first
        section.rows.append(
            [
                policies, f"{found.allowed:.0%}", found.verdict, found.outcome,
                found.cedar, asked, found.ratio, growth, built.seconds * 1e3,
            ]
        )  # fmt: skip
    section.targets = [Target(f"cost grows less than {_GROWTH} times", f"{growth:.1f} times", growth < _GROWTH)]
    return section
