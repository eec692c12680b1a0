"""The table of contests: a row for each engine, a column for each size."""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import Contest
from bench.lanes import ALL, OWN, Lane
from bench.report import duration

__all__ = ["columns", "measured", "points", "rows"]

_CASES = {
    "verdict": "Eastgate, the verdict",
    "same": "Eastgate, peers' questions",
    "rule": "Eastgate, and which rule",
}


def measured(contests: Sequence[Contest], asked: int) -> str:
    """Return the description of the numbers."""
    rounds = len(contests[0].verdict.times)
    return (
        f"CPU time per decision: the median of {rounds} rounds in turns, spread over the run, with the same {asked:,} "
        "prebuilt questions (peers: as many of the first ones as fit into their time). Every answer of a peer was "
        "compared with ours. own: the peer gets only the policies of the workload in the question, which is "
        "the work of our index, free; all: the peer gets all policies, with their targets. Brackets: how many times "
        "slower than our verdict over all questions; over the few questions of peers, our data is also in the caches."
    )


def columns(contests: Sequence[Contest]) -> tuple[str, ...]:
    """Return the columns: the sizes, and the ratio of the largest measured size to the smallest."""
    return ("engine", *(f"{len(one.built.policies):,} policies" for one in contests), "growth")


def rows(contests: Sequence[Contest]) -> list[list[str | float]]:
    """Return one row for each engine and case."""
    lanes = [[one.verdict for one in contests], [one.same for one in contests], [one.rule for one in contests]]
    lanes += [[one.peers[key] for one in contests if key in one.peers] for key in contests[0].peers]
    return [
        [_name(row[0]), *_cells(row, contests), *[""] * (len(contests) - len(row)), _growth(row)]
        for row in lanes
        if row
    ]


def points(kind: str, contests: Sequence[Contest]) -> list[dict[str, object]]:
    """Return the numbers of all contests for the JSON."""
    return [{"world": kind, **point} for contest in contests for point in contest.points()]


def _name(lane: Lane) -> str:
    return _CASES.get(lane.case) or f"{lane.engine}, {lane.case}"


def _cells(row: Sequence[Lane], contests: Sequence[Contest]) -> list[str]:
    return [_cell(lane, contest) for lane, contest in zip(row, contests, strict=False)]


def _cell(lane: Lane, contest: Contest) -> str:
    if lane.ns is None:
        return "too slow" if lane.cut else "-"
    if lane.case not in (OWN, ALL):
        return duration(lane.ns)
    times = lane.ns / (contest.verdict.ns or 1.0)
    return f"{'too slow: ' if lane.cut else ''}{duration(lane.ns)} ({times:,.0f})"


def _growth(row: Sequence[Lane]) -> float:
    found = [lane.ns for lane in row if lane.ns is not None]
    return found[-1] / found[0] if found else 0.0
