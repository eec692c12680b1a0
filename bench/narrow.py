"""The cost of a decision if all policies target one workload: many policies, or many rules on methods and paths.

An index of targets cannot help here, so peers get all policies, in one form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench import contest_table
from bench.built import Built
from bench.contest import Contest
from bench.lanes import FULL, OWN, QUICK
from bench.peers.base import Peer
from bench.plans import Ask, Plan
from bench.report import Section, Target
from bench.worlds import ask_http, ask_many, crowded, with_paths

__all__ = ["many", "paths"]

_MAX_GROWTH = 6


def many(peers: Sequence[Peer], *, quick: bool) -> Section:
    """Measure many policies on one workload."""
    sizes = (10, 100, 1_000) if quick else (10, 100, 1_000, 10_000)
    contests = _contests(peers, sizes, crowded, lambda plan: ask_many(plan, 10_000), quick=quick)
    section = _section(
        "A connection, with many policies on one workload",
        "Each policy has one rule with one to four callers and two ports.",
        "many",
        contests,
        10_000,
        [f"{size:,} policies" for size in sizes],
    )
    compiled = ", ".join(f"{len(one.built.policies):,}: {one.built.seconds * 1e3:.1f} ms" for one in contests)
    section.notes.append(f"our compile: {compiled}")
    return section


def paths(peers: Sequence[Peer], *, quick: bool) -> Section:
    """Measure many rules on methods and paths."""
    sizes = (1, 10, 100) if quick else (1, 10, 100, 1_000)
    contests = _contests(peers, sizes, with_paths, lambda plan: ask_http(plan, 2_000), quick=quick)
    return _section(
        "An HTTP request, with many rules on one workload",
        "A rule has two methods and a path (half are exact, the others a prefix or a suffix). It names two callers, or "
        "(one in five) every caller. Half of the questions are about paths that a rule names.",
        "paths",
        contests,
        2_000,
        [f"{size:,} rules" for size in sizes],
    )


def _contests(
    peers: Sequence[Peer],
    sizes: Sequence[int],
    world: Callable[[int], Plan],
    ask: Callable[[Plan], list[Ask]],
    *,
    quick: bool,
) -> list[Contest]:
    contests: list[Contest] = []
    for size in sizes:
        built = Built.of(world(size))
        smaller = contests[-1].peers if contests else None
        contests.append(Contest(built, ask(built.plan), peers, QUICK if quick else FULL, smaller, (OWN,)))
    for _ in range(2 if quick else 5):
        for contest in contests:
            contest.take()
    return contests


def _section(
    title: str, description: str, name: str, contests: Sequence[Contest], asked: int, sizes: Sequence[str]
) -> Section:
    growth = (contests[-1].verdict.ns or 0.0) / (contests[0].verdict.ns or 1.0)
    return Section(
        title,
        f"{description} {contest_table.measured(contests, asked)}",
        ("engine", *sizes, "growth"),
        contest_table.rows(contests),
        [Target(f"{name}: cost grows less than {_MAX_GROWTH} times", f"{growth:.1f} times", growth < _MAX_GROWTH)],
        [f"allowed: {', '.join(f'{one.allowed:.0%}' for one in contests)}"],
        contest_table.points(name, contests),
    )
