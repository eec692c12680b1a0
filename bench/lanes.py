"""One engine in one case at one size: its answers, which are checked, and the cost of an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.built import Built
from bench.peers.base import Loaded, Peer, RuleSet, all_rules, own_rules
from bench.plans import Ask
from bench.timing import clock, quiet, seconds_of, warmed

__all__ = ["ALL", "FULL", "OURS", "OWN", "QUICK", "Budget", "Lane", "MismatchError", "peer_lane"]

ALL, OWN = "all", "own"  # all policies, or only those of the workload in the question
OURS = "eastgate"

_LOADING_EXPONENT = 1.3  # the growth of loading with the number of policies in the worst case (Rego)
_MIN_ANSWERS = 10  # an engine that gives fewer answers within the budget is too slow


class MismatchError(AssertionError):
    """Two engines give different answers."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The time that a peer has at one size, and the number of its questions."""

    seconds: float
    loading: float
    asks: int
    round_seconds: float


FULL = Budget(seconds=2.0, loading=20.0, asks=400, round_seconds=0.08)
QUICK = Budget(seconds=0.25, loading=1.0, asks=60, round_seconds=0.02)


@dataclass(slots=True)
class Lane:
    """The measurements of an engine. `times`: seconds per decision in each round; `loads`: the loaded rule sets."""

    engine: str
    case: str
    policies: int
    asked: int = 0
    compared: int = 0
    loading: float = 0.0
    loads: int = 1
    times: list[float] = field(default_factory=list)
    cut: str | None = None
    work: Callable[[], object] | None = None

    @property
    def ns(self) -> float | None:
        """Return the nanoseconds per decision: the median of the rounds, or None without rounds."""
        return median(self.times) * 1e9 if self.times else None

    def take(self) -> None:
        """Measure one round, unless the engine is too slow."""
        if self.work is not None:
            with quiet():
                self.times.append(warmed(self.work) / self.asked)

    def point(self, verdict: float | None, same: float | None) -> dict[str, object]:
        """Return the numbers for the JSON. `verdict`, `same`: our ns over all questions, and over those of peers."""
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

    `smaller` is the same lane with fewer policies. If that lane shows that the budget is too small, nothing is asked.
    """
    lane = Lane(peer.name, case, len(built.policies))
    if smaller is not None and (hopeless := _hopeless(smaller, lane.policies, budget)):
        lane.cut = hopeless
        return lane
    chosen = asks[: budget.asks]
    start = clock()
    loader = _Loader(peer, case, built, chosen)
    pairs: list[tuple[Callable[[Any], bool], Any]] = []
    deciding = 0.0
    for ask, answer in zip(chosen, answers, strict=False):
        if pairs and clock() - start - loader.seconds > budget.seconds:
            break
        if len(pairs) >= _MIN_ANSWERS and loader.count > 1 and loader.seconds > budget.seconds:
            break  # deciding is fast enough, but loading the policies of each further workload is not
        loaded = loader.of(ask)
        question = loaded.prepare(ask)
        before = clock()
        verdict = loaded.decide(question)
        deciding += clock() - before
        if verdict != answer:
            raise MismatchError(
                f"{peer.name} ({case}, {lane.policies} policies) says {verdict}, Eastgate {answer}, for {ask}"
            )
        pairs.append((loaded.decide, question))
    lane.compared, lane.loading, lane.loads = len(pairs), loader.seconds, loader.count
    if len(pairs) < min(_MIN_ANSWERS, len(chosen)):
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
    if smaller.loads == 1 and smaller.loading * (policies / smaller.policies) ** _LOADING_EXPONENT > budget.loading:
        return f"not tried: loading took {smaller.loading:.1f} s at {smaller.policies:,}"
    return None


class _Loader:
    """A loader of all policies at once, or of those of each point at its first question."""

    def __init__(self, peer: Peer, case: str, built: Built, asks: Sequence[Ask]) -> None:
        self._peer, self._built = peer, built
        self._asks: dict[str, list[Ask]] = {}
        for ask in asks:
            self._asks.setdefault(ask.workload, []).append(ask)
        self._loaded: dict[str, Loaded] = {}
        self.seconds = 0.0
        self.count = 0
        self._all: Loaded | None = self._load(all_rules(built.plan, asks)) if case == ALL else None

    def of(self, ask: Ask) -> Loaded:
        """Return the engine that has the policies for a question."""
        if self._all is not None:
            return self._all
        point = ask.workload
        if point not in self._loaded:
            self._loaded[point] = self._load(own_rules(self._built.plans_on(point), self._asks[point]))
        return self._loaded[point]

    def _load(self, rule_set: RuleSet) -> Loaded:
        made: list[Loaded] = []
        self.count += 1
        self.seconds += seconds_of(lambda: made.append(self._peer.load(rule_set)))
        return made[0]
