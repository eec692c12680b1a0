"""What a decision costs where rules look at methods and paths, against Cedar."""

from __future__ import annotations

from bench.built import Built
from bench.report import Section, Target
from bench.versus import Versus
from bench.worlds import ask_http, with_paths

__all__ = ["run"]

_SIZES = {1: 2_000, 10: 2_000, 100: 1_000, 1_000: 200}  # rules, and how many questions Cedar is asked
_GROWTH = 6


def run(*, quick: bool) -> Section:
    """One row for each number of rules."""
    rounds = 3 if quick else 5
    section = Section(
        "A decision at L7",
        "The same. A rule has two methods and a path (half are exact, others a prefix or a suffix; in Cedar `like`) "
        "and names two callers, or everybody in one of five. Half of the questions are about paths that a rule names. "
        "Cedar is asked only the first of our 2,000 questions (`asked`).",
        ("rules", "allowed", "verdict ns", "+who ns", "Cedar ns", "asked", "times", "growth"),
    )
    first = growth = 0.0
    for rules, for_cedar in _SIZES.items():
        built = Built.of(with_paths(rules))
        asked = min(for_cedar, 200) if quick else for_cedar
        found = Versus(built, ask_http(built.plan, 2_000), asked)
        found.take(rounds)
        first = first or found.verdict
        growth = found.verdict / first
        section.rows.append(
            [rules, f"{found.allowed:.0%}", found.verdict, found.outcome, found.cedar, asked, found.ratio, growth]
        )
    section.targets = [
        Target(f"cost grows less than {_GROWTH} times from 1 to 1,000 rules", f"{growth:.1f} times", growth < _GROWTH)
    ]
    return section
