"""All answers: for each entrance of each destination, callers to whom the same happens, and what happens to them.

Callers are sets of cells (`CallerSets`). Where rules look at callers, ports and Services alone, sets are all that is
computed with; those callers for whom something else in a request decides are grouped by what the rules ask of them, and
each group has a decision list. The work grows with classes of workloads times what their rules name, not with pods
times accounts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from eastgate.authority.authority import Authority
from eastgate.basics.records import dataclass
from eastgate.ir import ALWAYS, NEVER, Chain, Computed, Is, Layer, Outcome, Predicate, Rule
from eastgate.ir.symbolic.callers import CallerCell
from eastgate.ir.symbolic.cells import TooManyEntries, in_order
from eastgate.ir.symbolic.partial import ArmIndex, Facts, residual
from eastgate.ir.symbolic.stages import Move, OrderedStage
from eastgate.ir.symbolic.trees import Entry
from eastgate.reach import gateways, workloads
from eastgate.reach.caller_sets import CallerSet, CallerSets
from eastgate.reach.destinations import Destination, Entrance
from eastgate.reach.endings import OPEN, Branch, Ending, Spelling, ending_of, fold, list_points
from eastgate.reach.numbering import caller_atoms, number_callers


@dataclass(frozen=True, slots=True)
class Answer:
    """What happens to the requests of some callers: the FIRST branch whose condition a request meets decides.

    `too_many`: there are more branches than can be listed, and nothing is said.
    """

    callers: CallerSet
    branches: tuple[Branch, ...]
    too_many: bool = False

    @property
    def allowed(self) -> bool | None:
        """Return whether all these requests are allowed, or none; None where that depends."""
        if self.too_many:
            return None
        verdicts = {branch.end.allowed for branch in self.branches}
        return verdicts.pop() if len(verdicts) == 1 else None


class Reachability:
    """All answers of an authority, as long as it does not change. They are computed where somebody asks for them."""

    def __init__(
        self,
        authority: Authority,
        known: Iterable[str] = (),
        namespaces: Iterable[str] = (),
        callers: CallerSets | None = None,
        is_late: Callable[[], bool] = lambda: False,
    ) -> None:
        """Prepare. `known` are identities that shall have cells of their own, beside those of accounts that exist.

        So shall the accounts of `namespaces`, which need not exist. `callers`: the cells, where several authorities are
        to have the same (`number_callers`). Once `is_late`, what depends on more than callers is too many cases.
        """
        self.authority = authority
        self._known = tuple(known)
        self._namespaces = frozenset(namespaces)
        self._callers = callers
        self._is_late = is_late
        self._answers: dict[tuple[Entrance, CallerSet], tuple[Answer, ...]] = {}
        self._decided: dict[Entrance, tuple[tuple[Answer, ...], CallerSet]] = {}
        self._walks: dict[int, _LayerWalk] = {}
        self._asked: dict[tuple[int, ...], list[Is | Computed]] = {}

    @cached_property
    def destinations(self) -> tuple[Destination, ...]:
        """Return every destination: classes of workloads, gateways, routes of undeclared gateways, backends."""
        kinds = (workloads.workloads, gateways.gateways, gateways.routes, workloads.backends)
        return tuple(chain.from_iterable(of_kind(self.authority) for of_kind in kinds))

    @cached_property
    def callers(self) -> CallerSets:
        """Return every cell of callers that some rule tells apart, every account that exists, every namespace."""
        if self._callers is not None:
            return self._callers
        layers = (layer for destination in self.destinations for layer in _layers(destination))
        return number_callers((self.authority,), layers, self._known, self._namespaces)

    def forgetful(self) -> Reachability:
        """Return one with the same callers that remembers no answer yet, for entrances that are thrown away."""
        return Reachability(self.authority, self._known, self._namespaces, self.callers)

    @cached_property
    def _index(self) -> ArmIndex:
        return ArmIndex(self.callers.callers)

    def answers(self, entrance: Entrance, among: CallerSet | None = None) -> tuple[Answer, ...]:
        """Return what happens at an entrance to whom: every caller, or every one of these, is in exactly one answer.

        Answers may be about others than these, too.
        """
        decided, left = self._decide(entrance)
        left = left if among is None else left & among
        answers = self._answers.get((entrance, left))
        if answers is None:
            answers = self._answers[entrance, left] = (*decided, *self._depending(entrance, left))
        return answers

    def possible(self, entrance: Entrance, *, allowed: bool) -> CallerSet:
        """Return the callers who may come to such a verdict at an entrance, by what they are alone."""
        decided, callers = self._decide(entrance)
        for answer in decided:
            if answer.allowed is allowed:
                callers |= answer.callers
        return callers

    def branches(
        self, entrance: Entrance, cell: CallerCell, facts: Facts | None = None, spelling: Spelling = Spelling.PLAIN
    ) -> list[Branch]:
        """Return what happens to the requests of one cell, in full. Raises TooManyEntries."""
        known = Facts.of_caller(cell, self.callers.callers).and_(entrance.facts)
        return self._listed(entrance, known if facts is None else known.and_(facts), spelling)

    def _decide(self, entrance: Entrance) -> tuple[tuple[Answer, ...], CallerSet]:
        """Return the answers for callers who alone decide, and the other callers."""
        known = self._decided.get(entrance)
        if known is not None:
            return known
        left = self.callers.everybody
        settled: dict[int, tuple[CallerSet, Ending]] = {}  # an ending is one object, wherever it is met
        if len(entrance.passages) == 1 and not entrance.hides_http:
            for callers, ending in self._settled(entrance):
                left &= ~callers
                before = settled.get(id(ending))
                settled[id(ending)] = callers if before is None else callers | before[0], ending
        answers = tuple(Answer(callers, (Entry(ALWAYS, ending),)) for callers, ending in settled.values())
        self._decided[entrance] = answers, left
        return answers, left

    def _depending(self, entrance: Entrance, left: CallerSet) -> Iterator[Answer]:
        """Yield the answers for callers whose verdicts depend on more."""
        if left:
            merged: dict[tuple[tuple[Branch, ...], bool], CallerSet] = {}
            key = tuple(map(id, entrance.layers))  # entrances of one destination mostly have the same
            asked = self._asked.get(key)
            if asked is None:
                asked = self._asked[key] = caller_atoms(entrance.layers)
            for alike in self.callers.alike(left, asked):
                branches = self._branches(entrance, alike) if not self._is_late() else None
                ends = branches or (), branches is None
                merged[ends] = merged.get(ends, 0) | alike
            yield from (Answer(callers, *ends) for ends, callers in merged.items())

    # Callers alone decide

    def _settled(self, entrance: Entrance) -> Iterator[tuple[CallerSet, Ending]]:
        """Yield what happens to callers whose verdict depends on nothing else in a request."""
        (passage,) = entrance.passages
        reached: list[tuple[CallerSet, Ending]] = [(self.callers.everybody, OPEN)]
        for point in passage.points:
            facts = entrance.facts.and_(point.facts) if point.facts.values else entrance.facts
            for layer in point.layers:
                if not reached:
                    return
                onward: list[tuple[CallerSet, Ending]] = []
                walked = self._walk(layer).of(facts)
                for callers, before in reached:
                    for decided, ending in walked:
                        both = callers & decided
                        if not both:
                            continue
                        if not ending.allowed:
                            yield both, ending
                        else:
                            onward.append((both, before if ending.is_unopposed else ending))
                reached = onward
        yield from reached

    def _walk(self, layer: Layer) -> _LayerWalk:
        walk = self._walks.get(id(layer))
        if walk is None:
            walk = self._walks[id(layer)] = _LayerWalk(layer, self.callers, self._index)
        return walk

    # More than callers decides

    def _branches(self, entrance: Entrance, alike: CallerSet) -> tuple[Branch, ...] | None:
        """Return what happens to the requests of callers whom no rule tells apart; None where that is too much."""
        cell = next(self.callers.cells_in(alike))
        looked_at = (attribute for layer in entrance.layers for attribute in layer.looks_at)
        if entrance.hides_http and any(attribute.needs_http for attribute in looked_at):
            return None  # what nobody sees decides
        try:
            return fold(self.branches(entrance, cell))
        except TooManyEntries:
            return None

    def _listed(self, entrance: Entrance, facts: Facts, spelling: Spelling) -> list[Branch]:
        if len(entrance.passages) == 1:
            return list_points(entrance.passages[0].points, facts, self._index, spelling)[1]
        return in_order(self._cases(entrance, facts, spelling))

    def _cases(self, entrance: Entrance, facts: Facts, spelling: Spelling) -> Iterator[tuple[Predicate, list[Branch]]]:
        for passage in entrance.passages:
            when = residual(passage.when, facts)
            if when != NEVER:
                yield when, list_points(passage.points, facts, self._index, spelling)[1]
            if when == ALWAYS:
                return


class _LayerWalk:
    """What a layer says of callers, for facts that are known of their requests."""

    def __init__(self, layer: Layer, callers: CallerSets, index: ArmIndex) -> None:
        self._layer = layer
        self._callers = callers
        self._index = index
        self._endings: dict[tuple[int, int], Ending] = {}

    def of(self, facts: Facts) -> list[tuple[CallerSet, Ending]]:
        """Return what happens to callers whose verdict depends on nothing else; the others are left out."""
        decided: list[tuple[CallerSet, Ending]] = []
        left = self._callers.everybody
        for case in self._layer.cases:
            held = self._callers.holding(case.when, facts)
            chosen = left & held.sure
            if chosen:
                self._through(case.chain, chosen, facts, decided)
            left &= ~held.possible
            if not left:
                return decided
        self._through(self._layer.otherwise, left, facts, decided)
        return decided

    def _through(self, chain: Chain, callers: CallerSet, facts: Facts, decided: list[tuple[CallerSet, Ending]]) -> None:
        """Lead callers through the stages of a chain."""
        going: list[tuple[CallerSet, Ending]] = [(callers, OPEN)]
        for stage in self._index.stages(chain):
            if not going:
                return
            going = self._pass_stage(stage, going, facts, decided)
        decided += going

    def _pass_stage(
        self,
        stage: OrderedStage,
        going: Sequence[tuple[CallerSet, Ending]],
        facts: Facts,
        decided: list[tuple[CallerSet, Ending]],
    ) -> list[tuple[CallerSet, Ending]]:
        """Lead callers through a stage; return those who go on, each with the acceptance that they have then."""
        asked = 0
        for some, _ in going:
            asked |= some
        passed: list[tuple[CallerSet, Ending]] = []  # with the acceptance of this stage
        on: CallerSet = 0  # those who go on with the acceptance that they had
        for arm in stage.arms:
            held = self._callers.holding(arm.when, facts)
            met = asked & held.sure
            asked &= ~held.possible
            if met and arm.move is Move.PASS:
                on |= met
            elif met:
                ending = self._ending(stage, arm.rule, allowed=arm.move is not Move.DENY)
                (passed if arm.move is Move.PROCEED else decided).append((met, ending))
            if not asked:
                break
        if stage.otherwise is Move.DENY:
            decided += [(asked, self._ending(stage, None, allowed=False))] if asked else []
        elif stage.otherwise is Move.ACCEPT:
            decided += [(asked & some, ending) for some, ending in going if asked & some]
        else:
            on |= asked
        return [*passed, *((on & some, ending) for some, ending in going if on & some)]

    def _ending(self, stage: OrderedStage, rule: Rule | None, *, allowed: bool) -> Ending:
        key = id(stage), id(rule)
        ending = self._endings.get(key)
        if ending is None:
            refusal = None if allowed else stage.refusal
            ending = ending_of(Outcome(allowed, self._layer.name, stage.name, rule, refusal))
            self._endings[key] = ending
        return ending


def _layers(destination: Destination) -> Iterator[Layer]:
    if destination.layers:
        return iter(destination.layers)
    return chain.from_iterable(entrance.layers for entrance in destination.entrances)
