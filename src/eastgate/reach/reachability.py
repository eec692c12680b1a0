"""All answers: for each entrance of each destination, groups of callers with the same verdicts.

Callers are sets of cells (`CallerSets`). If rules read only callers, ports and Services, only sets are computed. Other
callers, whose verdicts depend on more attributes, are grouped by the rules that read them, and each group gets a
decision list. The work grows with the classes of workloads times the names in their rules, not with pods times
accounts.
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
    """The verdicts on the requests of some callers: the FIRST branch whose condition a request meets decides.

    `too_many`: there are too many branches to list, so that the answer has none.
    """

    callers: CallerSet
    branches: tuple[Branch, ...]
    too_many: bool = False

    @property
    def allowed(self) -> bool | None:
        """Return whether all these requests are allowed, or none; None if it depends on the request."""
        if self.too_many:
            return None
        verdicts = {branch.end.allowed for branch in self.branches}
        return verdicts.pop() if len(verdicts) == 1 else None


class Reachability:
    """All answers of one version of an authority, computed on demand."""

    def __init__(
        self,
        authority: Authority,
        known: Iterable[str] = (),
        namespaces: Iterable[str] = (),
        callers: CallerSets | None = None,
        is_late: Callable[[], bool] = lambda: False,
    ) -> None:
        """Prepare the answers. The identities in `known` have their own cells, like existing accounts.

        So have the accounts of `namespaces`, which need not exist. `callers`: the cells, if several authorities share
        them (`number_callers`). Once `is_late` returns True, verdicts that depend on more than the caller are too many
        cases.
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
        """Return every cell that a rule distinguishes, every existing account, and every namespace."""
        if self._callers is not None:
            return self._callers
        layers = (layer for destination in self.destinations for layer in _layers(destination))
        return number_callers((self.authority,), layers, self._known, self._namespaces)

    def forgetful(self) -> Reachability:
        """Return an object with the same callers and an empty cache, for entrances that are not kept."""
        return Reachability(self.authority, self._known, self._namespaces, self.callers)

    @cached_property
    def _index(self) -> ArmIndex:
        return ArmIndex(self.callers.callers)

    def answers(self, entrance: Entrance, among: CallerSet | None = None) -> tuple[Answer, ...]:
        """Return the answers at an entrance. Every caller, or every one in `among`, is in exactly one answer.

        Answers may contain other callers, too.
        """
        decided, left = self._decide(entrance)
        left = left if among is None else left & among
        answers = self._answers.get((entrance, left))
        if answers is None:
            answers = self._answers[entrance, left] = (*decided, *self._answers_by_request(entrance, left))
        return answers

    def possible(self, entrance: Entrance, *, allowed: bool) -> CallerSet:
        """Return the callers that may get such a verdict at an entrance, considering only the callers."""
        decided, callers = self._decide(entrance)
        for answer in decided:
            if answer.allowed is allowed:
                callers |= answer.callers
        return callers

    def branches(
        self, entrance: Entrance, cell: CallerCell, facts: Facts | None = None, spelling: Spelling = Spelling.PLAIN
    ) -> list[Branch]:
        """Return the full decision list for the requests of one cell. Raises TooManyEntries."""
        known = Facts.of_caller(cell, self.callers.callers).and_(entrance.facts)
        return self._listed(entrance, known if facts is None else known.and_(facts), spelling)

    def _decide(self, entrance: Entrance) -> tuple[tuple[Answer, ...], CallerSet]:
        """Return the answers that depend only on the caller, and the callers without such an answer."""
        known = self._decided.get(entrance)
        if known is not None:
            return known
        left = self.callers.everybody
        settled: dict[int, tuple[CallerSet, Ending]] = {}  # each ending is one object
        if len(entrance.passages) == 1 and not entrance.hides_http:
            for callers, ending in self._endings_by_caller(entrance):
                left &= ~callers
                before = settled.get(id(ending))
                settled[id(ending)] = callers if before is None else callers | before[0], ending
        answers = tuple(Answer(callers, (Entry(ALWAYS, ending),)) for callers, ending in settled.values())
        self._decided[entrance] = answers, left
        return answers, left

    def _answers_by_request(self, entrance: Entrance, left: CallerSet) -> Iterator[Answer]:
        """Yield the answers for callers whose verdicts depend on more attributes."""
        if left:
            merged: dict[tuple[tuple[Branch, ...], bool], CallerSet] = {}
            key = tuple(map(id, entrance.layers))  # most entrances of one destination have the same layers
            asked = self._asked.get(key)
            if asked is None:
                asked = self._asked[key] = caller_atoms(entrance.layers)
            for alike in self.callers.alike(left, asked):
                branches = self._branches(entrance, alike) if not self._is_late() else None
                ends = branches or (), branches is None
                merged[ends] = merged.get(ends, 0) | alike
            yield from (Answer(callers, *ends) for ends, callers in merged.items())

    # Verdicts that depend only on callers

    def _endings_by_caller(self, entrance: Entrance) -> Iterator[tuple[CallerSet, Ending]]:
        """Yield the endings of callers whose verdict depends on no other attribute."""
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

    # Verdicts that depend on more than callers

    def _branches(self, entrance: Entrance, alike: CallerSet) -> tuple[Branch, ...] | None:
        """Return the decision list of callers that no rule distinguishes, or None if it is too long."""
        cell = next(self.callers.cells_in(alike))
        looked_at = (attribute for layer in entrance.layers for attribute in layer.looks_at)
        if entrance.hides_http and any(attribute.needs_http for attribute in looked_at):
            return None  # the verdict depends on attributes that no point sees
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
    """The evaluation of a layer for all callers, given some facts about their requests."""

    def __init__(self, layer: Layer, callers: CallerSets, index: ArmIndex) -> None:
        self._layer = layer
        self._callers = callers
        self._index = index
        self._endings: dict[tuple[int, int], Ending] = {}

    def of(self, facts: Facts) -> list[tuple[CallerSet, Ending]]:
        """Return the endings of callers whose verdict depends on no other attribute. Other callers are left out."""
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
        """Evaluate the stages of a chain for some callers, and add the results to `decided`."""
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
        """Return the callers that go on after a stage, with their latest acceptance. Add the others to `decided`."""
        asked = 0
        for some, _ in going:
            asked |= some
        passed: list[tuple[CallerSet, Ending]] = []  # with the acceptance of this stage
        on: CallerSet = 0  # callers that go on with their earlier acceptance
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
