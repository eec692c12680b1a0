"""How contests are shown: a row for each engine, a column for each size."""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import Contest
from bench.lanes import ALL, OWN, Lane
from bench.report import duration

__all__ = ["columns", "measured", "rows", "told"]

_CASES = {
    "verdict": "Eastgate, the verdict",
    "same": "Eastgate, peers' questions",
    "rule": "Eastgate, and which rule",
}


def measured(contests: Sequence[Contest], asked: int) -> str:
    """What the numbers of such a table are."""
    rounds = len(contests[0].verdict.times)
    return (
        f"CPU time per decision: the median of {rounds} rounds in turns, spread over the run, over the same {asked:,} "
        "prebuilt questions (peers: as many of them, from the first on, as fit into their time); every answer that a "
        "peer gave was compared with ours. own: the peer is given only the policies of what is asked about, which is "
        "the work of our index, for free; all: it is given all of them, with their targets. In brackets: how many of "
        "our verdicts, over all questions, take as long; over the few that peers are asked ours are in the caches, too."
    )


def columns(contests: Sequence[Contest]) -> tuple[str, ...]:
    """The sizes, and how much the largest measured takes of the smallest."""
    return ("engine", *(f"{len(one.built.policies):,} policies" for one in contests), "growth")


def rows(contests: Sequence[Contest]) -> list[list[str | float]]:
    """One for each engine and case."""
    lanes = [[one.verdict for one in contests], [one.same for one in contests], [one.rule for one in contests]]
    lanes += [[one.peers[key] for one in contests if key in one.peers] for key in contests[0].peers]
    return [
        [_name(row[0]), *_cells(row, contests), *[""] * (len(contests) - len(row)), _growth(row)]
        for row in lanes
        if row
    ]


def told(kind: str, contests: Sequence[Contest]) -> list[dict[str, object]]:
    """For machines."""
    return [{"world": kind, **one} for contest in contests for one in contest.told()]


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
