"""One engine in one case at one size: what it answers, checked, and what an answer costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.built import Built
from bench.peers.base import Deck, Loaded, Peer, own_deck, whole_deck
from bench.plans import Ask
from bench.timing import clock, quiet, seconds_of, warmed

__all__ = ["ALL", "FULL", "OURS", "OWN", "QUICK", "Budget", "Lane", "MismatchError", "peer_lane"]

ALL, OWN = "all", "own"  # all policies, or only those of the workload that is asked about
OURS = "eastgate"

_LOADING = 1.3  # the power of the number of policies by which loading grows where it grows most (Rego)
_ENOUGH = 10  # answers within the budget, below which an engine is too slow


class MismatchError(AssertionError):
    """Two engines do not say the same."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a peer may take at one point, and how much it is asked there."""

    seconds: float
    loading: float
    asks: int
    round_seconds: float


FULL = Budget(seconds=2.0, loading=20.0, asks=400, round_seconds=0.08)
QUICK = Budget(seconds=0.25, loading=1.0, asks=60, round_seconds=0.02)


@dataclass(slots=True)
class Lane:
    """What was found. `times` are seconds per decision, one for each round; `decks`, how often policies were loaded."""

    engine: str
    case: str
    policies: int
    asked: int = 0
    compared: int = 0
    loading: float = 0.0
    decks: int = 1
    times: list[float] = field(default_factory=list)
    cut: str | None = None
    work: Callable[[], object] | None = None

    @property
    def ns(self) -> float | None:
        """Nanoseconds per decision: the median of the rounds; None where nothing was measured."""
        return median(self.times) * 1e9 if self.times else None

    def take(self) -> None:
        """One round, if there is anything to do."""
        if self.work is not None:
            with quiet():
                self.times.append(warmed(self.work) / self.asked)

    def told(self, verdict: float | None, same: float | None) -> dict[str, object]:
        """For machines; given our nanoseconds over all questions, and over those that peers are asked."""
        ns = self.ns
        return {
            "engine": self.engine, "case": self.case, "policies": self.policies, "ns": ns,
            "times": ns / verdict if ns is not None and verdict else None,
            "times_same": ns / same if ns is not None and same else None,
            "asked": self.asked, "compared": self.compared, "loading_s": self.loading, "rounds": len(self.times),
            "too_slow": self.cut,
        }  # fmt: skip


def peer_lane(
    peer: Peer,
    case: str,
    built: Built,
    asks: Sequence[Ask],
    answers: Sequence[bool],
    budget: Budget,
    smaller: Lane | None = None,
) -> Lane:
    """Ask a peer as much as fits into the budget, and compare every answer.

    `smaller` is the same with fewer policies: where that leaves no hope, nothing is tried.
    """
    lane = Lane(peer.name, case, len(built.policies))
    if smaller is not None and (hopeless := _hopeless(smaller, lane.policies, budget)):
        lane.cut = hopeless
        return lane
    chosen = asks[: budget.asks]
    start = clock()
    decks = _Decks(peer, case, built, chosen)
    pairs: list[tuple[Callable[[Any], bool], Any]] = []
    deciding = 0.0
    for ask, answer in zip(chosen, answers, strict=False):
        if pairs and clock() - start - decks.seconds > budget.seconds:
            break
        if len(pairs) >= _ENOUGH and decks.count > 1 and decks.seconds > budget.seconds:
            break  # it is quick enough, but loading the policies of ever more workloads is not
        loaded = decks.of(ask)
        question = loaded.prepare(ask)
        before = clock()
        said = loaded.decide(question)
        deciding += clock() - before
        if said != answer:
            raise MismatchError(
                f"{peer.name} ({case}, {lane.policies} policies) says {said}, we say {answer}, of {ask}"
            )
        pairs.append((loaded.decide, question))
    lane.compared, lane.loading, lane.decks = len(pairs), decks.seconds, decks.count
    if len(pairs) < min(_ENOUGH, len(chosen)):
        lane.cut = f"{len(pairs)} answers in {budget.seconds:g} s"
    each = deciding / len(pairs)
    lane.asked = max(1, min(len(pairs), int(budget.round_seconds / max(each, 1e-9))))
    lane.work = _asking(pairs[: lane.asked])
    if lane.cut:  # one more round would cost as much as all others together
        lane.times, lane.work = [each], None
    return lane


def _asking(pairs: Sequence[tuple[Callable[[Any], bool], Any]]) -> Callable[[], None]:
    def work() -> None:
        for decide, question in pairs:
            decide(question)

    return work


def _hopeless(smaller: Lane, policies: int, budget: Budget) -> str | None:
    if smaller.cut is not None:
        return f"not tried: too slow at {smaller.policies:,}"
    if smaller.decks == 1 and smaller.loading * (policies / smaller.policies) ** _LOADING > budget.loading:
        return f"not tried: loading took {smaller.loading:.1f} s at {smaller.policies:,}"
    return None


class _Decks:
    """Loads what is asked about: everything at once, or what targets a point when it is first asked about."""

    def __init__(self, peer: Peer, case: str, built: Built, asks: Sequence[Ask]) -> None:
        self._peer, self._built = peer, built
        self._asks: dict[str, list[Ask]] = {}
        for ask in asks:
            self._asks.setdefault(ask.workload, []).append(ask)
        self._loaded: dict[str, Loaded] = {}
        self.seconds = 0.0
        self.count = 0
        self._all: Loaded | None = self._load(whole_deck(built.plan, asks)) if case == ALL else None

    def of(self, ask: Ask) -> Loaded:
        """The engine that has the policies for a question."""
        if self._all is not None:
            return self._all
        point = ask.workload
        if point not in self._loaded:
            self._loaded[point] = self._load(own_deck(self._built.plans_on(point), self._asks[point]))
        return self._loaded[point]

    def _load(self, deck: Deck) -> Loaded:
        made: list[Loaded] = []
        self.count += 1
        self.seconds += seconds_of(lambda: made.append(self._peer.load(deck)))
        return made[0]
