"""The cost of a decision as a world grows: for connections, HTTP requests and tool calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench import contest_table
from bench.built import Built
from bench.contest import Contest
from bench.lanes import FULL, QUICK
from bench.peers.base import Peer, version_of
from bench.plans import Ask, Plan
from bench.report import Section, Target
from bench.worlds import ask_some, generate
from bench.worlds_l7 import ask_paths, ask_tools, http_world, mcp_world

__all__ = ["KINDS", "SIZES", "Growing", "Kind", "sizes"]

SIZES = (10, 100, 1_000, 10_000, 100_000)
_MAX_POLICIES_OF_PEERS = 10_000
_MIN_CEDAR_RATIO = 80  # Cedar has only the workload's own policies, of 1,000
_MAX_GROWTH = 6  # from the smallest to the largest world


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of world, with its questions."""

    title: str
    description: str
    world: Callable[[int], Plan]
    ask: Callable[[Plan, list[str], int], list[Ask]]


KINDS: Mapping[str, Kind] = {
    "network": Kind(
        "A connection, as the world grows",
        "About five policies target a pod, on identities and ports.",
        generate,
        ask_some,
    ),
    "http": Kind(
        "An HTTP request, as the world grows",
        "The same pods and callers; each rule also names methods and a path (exact, prefix or suffix).",
        http_world,
        ask_paths,
    ),
    "mcp": Kind(
        "A call of a tool at a Gateway, as the world grows",
        "25 policies on each Gateway, on an agent and its tools.",
        mcp_world,
        ask_tools,
    ),
}


def sizes(name: str, *, quick: bool) -> tuple[int, ...]:
    """Return the numbers of policies for the worlds of a kind."""
    if quick:
        return SIZES[:4] if name == "network" else SIZES[:3]
    return SIZES


class Growing:
    """Worlds of all sizes, smaller ones first.

    Each is measured when it is new, while memory holds little else, which favours compiled peers. It is measured again
    later in turns with the others, so that a busy minute of the machine cannot spoil all rounds of the large ones.
    """

    def __init__(self, name: str, peers: Sequence[Peer], *, quick: bool) -> None:
        self._name, self._kind, self._peers = name, KINDS[name], peers
        self._budget = QUICK if quick else FULL
        self._asks, self._rounds = (2_000, 2) if quick else (10_000, 3)
        self.contests: list[Contest] = []

    def add(self, policies: int) -> None:
        """Build a world with this many policies, and measure it."""
        built = Built.of(self._kind.world(policies))
        asks = self._kind.ask(built.plan, built.targeted, self._asks)
        peers = self._peers if policies <= _MAX_POLICIES_OF_PEERS else ()
        smaller = self.contests[-1].peers if self.contests else None
        contest = Contest(built, asks, peers, self._budget, smaller)
        contest.take(self._rounds)
        self.contests.append(contest)

    def again(self) -> None:
        """Measure one more round in all worlds."""
        for contest in self.contests:
            contest.take()

    def conclude(self) -> Section:
        """Return the table with its targets."""
        last = self.contests[-1]
        versions = ", ".join(version_of(peer) for peer in self._peers)
        points = ", ".join(
            f"{len(one.built.policies):,}: {len(one.built.points):,} ({one.allowed:.0%} allowed)"
            for one in self.contests
        )
        return Section(
            self._kind.title,
            f"{self._kind.description} {contest_table.measured(self.contests, self._asks)}",
            contest_table.columns(self.contests),
            contest_table.rows(self.contests),
            list(self._targets()),
            [
                f"points of enforcement: {points}",
                f"compiling the largest world took {last.built.seconds:.1f} s",
                *([f"peers: {versions}"] if versions else []),
            ],
            contest_table.points(self._name, self.contests),
        )

    def _targets(self) -> list[Target]:
        """Return the targets. Only connections have targets."""
        if self._name != "network":
            return []
        growth = (self.contests[-1].verdict.ns or 0.0) / (self.contests[0].verdict.ns or 1.0)
        sizes = [len(one.built.policies) for one in self.contests]
        reached = [
            Target(
                f"cost grows less than {_MAX_GROWTH} times from {sizes[0]:,} to {sizes[-1]:,} policies",
                f"{growth:.1f} times",
                growth < _MAX_GROWTH,
            )
        ]
        lane = self.contests[sizes.index(1_000)].peers.get(("cedar", "own")) if 1_000 in sizes else None
        if lane is not None and lane.ns is not None:
            ratio = lane.ns / (self.contests[sizes.index(1_000)].verdict.ns or 1.0)
            reached.append(
                Target(
                    f"at least {_MIN_CEDAR_RATIO} times Cedar with its own policies only, at 1,000",
                    f"{ratio:.0f} times",
                    ratio >= _MIN_CEDAR_RATIO,
                )
            )
        return reached
