"""The search for a counterexample that a change introduces.

It is searched among the differences between the authority without the change and the authority with it. An invariant
that was broken before is broken by the change only if the change adds a counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from types import MappingProxyType

from eastgate.authority.authority import Authority
from eastgate.authority.questions import QuestionError
from eastgate.basics.records import dataclass
from eastgate.cluster import Target
from eastgate.ir import NEVER, Predicate, Request, authorizers_in
from eastgate.ir.attributes import METHOD, PATH, SOURCE_LABELS, Attribute
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.ir.symbolic.simplify import both
from eastgate.ir.symbolic.trees import truth
from eastgate.ir.symbolic.witnesses import GaveUp, pick_values
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.comparison import AuthorityComparison, ComparisonDoubt, DoubtReason, VerdictDifference
from eastgate.reach.destinations import Destination, Entrance
from eastgate.reach.differences import compare_pairs, has_shared_server_or_tokens, pair_some_workloads
from eastgate.reach.endings import OPEN, Spelling
from eastgate.reach.pairing import Pair, go_on
from eastgate.reach.reachability import Reachability
from eastgate.reach.searching import Witness, witnesses
from eastgate.reports.invariants.callers import CallerTest, TooManyLabels
from eastgate.reports.invariants.covering import Covered, OwnAccess, cover_destinations, covers_of, find_missing
from eastgate.reports.invariants.future import ImaginedPod, imagine
from eastgate.reports.invariants.labels import TooManyLabellings
from eastgate.reports.invariants.model import Statement
from eastgate.reports.invariants.objects import Counterexample, StatementStanding
from eastgate.reports.invariants.proving import StatementProof, prove
from eastgate.reports.invariants.requests import requests_at
from eastgate.reports.invariants.selecting import may_select, selects_otherwise

_ABOUT_NO_STATEMENT = frozenset({DoubtReason.HOST, DoubtReason.NETWORK, DoubtReason.UNREAD})
_USUAL: Mapping[Attribute, str] = MappingProxyType({METHOD: "GET", PATH: "/"})
_NO_TIME = "the time limit was reached before the proof"
_TOO_MANY_LABELS = "policies select by too many labels for a proof about workloads that do not exist yet"


@dataclass(frozen=True, slots=True)
class Breach:
    """The effect of a change on a statement: a counterexample that the change introduces, a doubt, or nothing.

    `is_about_destinations`: the doubt is about a destination of the statement that the change may affect. Other doubts
    are independent of the change.
    """

    counterexample: Counterexample | None = None
    doubt: str | None = None
    is_about_destinations: bool = False


def named_callers(statements: Iterable[Statement], authority: Authority) -> tuple[set[str], set[str]]:
    """Return the identities and the namespaces that statements name. They need cells in a comparison."""
    tests = [_test(statement, authority) for statement in statements]
    identities = {identity for test in tests for identity in test.identities}
    return identities, {namespace for test in tests for namespace in test.namespaces}


def _test(statement: Statement, authority: Authority) -> CallerTest:
    return CallerTest(statement, authority.world, authority.settings.trust_domain)


class BreachHunt:
    """The search for a breach of one statement, first among existing objects, then among future ones.

    `search` looks for requests that break the statement with the change, among the requests that the statement covers
    and the change may affect. Its time does not depend on the rest of the change. If there is no such request, there is
    no breach. `conclude` needs a comparison of all existing objects only if requests broke the statement before. A
    breach that existed before the change does not count.
    """

    def __init__(
        self,
        paired: AuthorityComparison,
        statement: Statement,
        targets: Sequence[Target],
        is_late: Callable[[], bool] = go_on,
    ) -> None:
        """`paired` has cells for the callers that the statement names, and `targets` are its `changed_targets`."""
        self._paired = paired
        self._statement = statement
        self._targets = targets
        self._is_late = is_late
        self._existing: Breach | None = None
        self._future = Breach()

    def search(self) -> None:
        """Search for requests that break the statement, without a comparison."""
        paired, statement = self._paired, self._statement
        missing = next(find_missing(statement, paired.new.world), None)
        if missing is not None:
            self._existing = Breach(doubt=missing.message)
            return
        otherwise = selects_otherwise(paired, statement)
        if otherwise is not None:
            self._existing = _prove_again(paired, statement, otherwise, self._is_late)
            return
        try:
            self._existing = _BreachSearch(paired, statement, {}, self._is_late).search_without_comparison()
            is_broken = self._existing is not None and self._existing.counterexample is not None
            if not is_broken and statement.include_future and may_select(paired, statement, self._targets):
                self._future = _find_in_future(paired, statement, self._is_late)
        except TooManyLabels:
            self._existing = Breach(doubt="namespaces are selected by too many labels")

    @property
    def counterexample(self) -> Counterexample | None:
        """Return the request that `search` found."""
        existing = self._existing.counterexample if self._existing is not None else None
        return existing or self._future.counterexample

    def conclude(self, comparison: AuthorityComparison, is_late: Callable[[], bool] = go_on) -> Breach:
        """Return the breach of the statement, from a comparison of all existing objects."""
        if self._future.counterexample is not None:
            return self._future
        existing = self._existing or _BreachSearch(comparison, self._statement, {}, is_late).run()
        return self._future if existing.counterexample is None and existing.doubt is None else existing


def _prove_again(
    comparison: AuthorityComparison, statement: Statement, why: str, is_late: Callable[[], bool]
) -> Breach:
    """Prove the statement as a whole. Its callers or destinations may have changed without any change of a verdict."""
    if is_late():
        return Breach(doubt=_NO_TIME)
    now = prove(comparison.new, statement)
    if now.standing is StatementStanding.HOLDS:
        return Breach()
    if now.counterexample is not None and prove(comparison.old, statement).counterexample is None:
        return Breach(now.counterexample)
    return Breach(doubt=why)


def _find_in_future(comparison: AuthorityComparison, statement: Statement, is_late: Callable[[], bool]) -> Breach:
    """Compare future objects: the same pods are imagined on both sides."""
    old, new = comparison.old, comparison.new
    covers = covers_of(statement, new.world)
    known, namespaces = named_callers((statement,), new)
    doubt = None
    try:
        worlds = [pods for side in (new, old) for pods in imagine(side, covers)]
    except TooManyLabellings:
        return Breach(doubt=_TOO_MANY_LABELS, is_about_destinations=True)
    for pods in worlds:
        if is_late():
            return Breach(doubt=_NO_TIME, is_about_destinations=True)
        imagined = {pod.key: pod for pod in pods}
        objects = {declared.id: declared for pod in pods for declared in pod.objects}
        with ExitStack() as stack:
            for side in (old, new):
                stack.enter_context(side.imagining(objects.values()))
            paired = pair_some_workloads(
                old,
                new,
                frozenset(imagined),
                same_network=comparison.pairing.same_network,
                known=known,
                namespaces=namespaces,
                is_late=is_late,
            )
            breach = _BreachSearch(paired, statement, imagined, is_late).search_without_comparison()
            if breach is None:
                differing = compare_pairs(paired, spellings=False, is_late=is_late, beside=False)
                breach = _BreachSearch(differing, statement, imagined, is_late).run()
        if breach.counterexample is not None:
            return breach
        doubt = doubt or breach.doubt
    return Breach(doubt=doubt, is_about_destinations=True)


class _BreachSearch:
    """The search for a request that fits a statement, and whose new verdict breaks it."""

    def __init__(
        self,
        comparison: AuthorityComparison,
        statement: Statement,
        imagined: Mapping[str, ImaginedPod],
        is_late: Callable[[], bool],
    ) -> None:
        self._comparison = comparison
        self._statement = statement
        self._imagined = imagined
        self._is_late = is_late
        self._proof = StatementProof(comparison.new, statement)
        self._test = _test(statement, comparison.new)
        self._reach = Reachability(comparison.new, callers=comparison.callers, is_late=is_late)
        self._doubt: str | None = None
        self._is_about_destinations = True

    def search_without_comparison(self) -> Breach | None:
        """Search for requests that break the statement with the change; None if a comparison is needed."""
        pairing = self._comparison.pairing
        places = {pair: found for pair in pairing.pairs if (found := self._places(pair))}
        is_certain = not (pairing.is_late or pairing.uncertain or any(map(has_shared_server_or_tokens, places)))
        candidates = list(self._possible(chain.from_iterable(places.values())))
        for find in (self._probes, self._witnesses):
            for place, callers, fitting in candidates:
                try:
                    for witness in find(place.entrance, callers, fitting):
                        counterexample = self._confirm(place, witness)
                        if counterexample is not None:
                            return Breach(counterexample)
                        if self._is_late():
                            return None
                        is_certain = is_certain and find == self._probes
                except GaveUp:
                    is_certain = False
                if self._is_late():
                    return None
        return Breach() if is_certain and not self._is_late() else None

    def _possible(self, places: Iterable[Covered]) -> Iterator[tuple[Covered, CallerSet, Predicate]]:
        """Yield the callers that may break the statement at each place, with the requests that do."""
        selected_callers = None
        for place in places:
            if self._is_late():
                return
            if selected_callers is None:
                selected_callers = self._test.choose(
                    self._comparison.callers, is_selected=self._statement.is_about_named
                )
            possible = self._reach.possible(place.entrance, allowed=self._statement.breaks)
            fitting, others = self._others(place)
            for callers in selected_callers:
                if some := callers.callers & possible & others:
                    yield place, some, both((fitting, callers.where))

    def _others(self, place: Covered) -> tuple[Predicate, CallerSet]:
        """Return the requests of the statement at a place, and the callers except for the pod itself."""
        own = OwnAccess.of(place, self._comparison.new.world)
        fitting = requests_at(self._statement, place.entrance, own)
        return fitting, self._proof.others(own, self._test, self._comparison.callers)

    def _witnesses(self, entrance: Entrance, callers: CallerSet, fitting: Predicate) -> Iterator[Witness]:
        return witnesses(self._reach, entrance, callers, fitting, allowed=self._statement.breaks)

    def _probes(self, entrance: Entrance, callers: CallerSet, fitting: Predicate) -> Iterator[Witness]:
        """Yield the simplest request for each rule. The number of rules does not matter much."""
        sets = self._comparison.callers
        chains = chain.from_iterable(layer.chains for layer in entrance.layers)
        for rule in chain.from_iterable(each.rules(observed=False) for each in chains):
            if self._is_late():
                return
            some = sets.holding(rule.when, entrance.facts).possible & callers
            if not some:
                continue
            cell = next(sets.cells_in(some))
            known = Facts.of_caller(cell, sets.callers).and_(entrance.facts)
            when = both((residual(rule.when, known), residual(fitting, known)))
            values = pick_values(when) if when != NEVER else None
            if values is not None:
                usual = Request(values | {each: value for each, value in _USUAL.items() if each in values})
                yield Witness(cell, usual if truth(when, usual) is True else Request(values), OPEN)

    def run(self) -> Breach:
        """Search all differences that the statement covers."""
        differences = [each for each in self._comparison.differences if self._may_break(each)]
        sets = self._comparison.callers
        selected_callers = self._test.choose(sets, is_selected=self._statement.is_about_named) if differences else []
        for difference in differences:
            for callers in selected_callers:
                some = callers.callers & difference.callers
                for place, witness in self._candidates(difference, some, callers.where) if some else ():
                    counterexample = self._confirm(place, witness)
                    if counterexample is not None:
                        return Breach(counterexample)
        for doubt in self._comparison.doubts:
            self._consider(doubt)
        return Breach(doubt=self._doubt, is_about_destinations=self._is_about_destinations)

    def _may_break(self, difference: VerdictDifference) -> bool:
        if difference.spelling is not Spelling.PLAIN or difference.new.allowed is not self._statement.breaks:
            return False
        return any(place.entrance is difference.entrance for place in self._places(difference.pair))

    def _candidates(
        self, difference: VerdictDifference, callers: CallerSet, where: Predicate
    ) -> Iterator[tuple[Covered, Witness]]:
        for place in self._places(difference.pair):
            if place.entrance is not difference.entrance:
                continue
            if self._is_late():
                self._note(_NO_TIME)
                return
            requests, others = self._others(place)
            fitting = both((requests, where, difference.when))
            some = callers & others
            try:
                for witness in witnesses(self._reach, place.entrance, some, fitting, allowed=self._statement.breaks):
                    yield place, witness
            except GaveUp:
                self._note(f"there are too many cases at {place}")

    def _places(self, pair: Pair) -> list[Covered]:
        entrances = tuple(now for _, now in pair.entrances)
        destination = Destination(pair.kind, pair.members, entrances)
        world = self._comparison.new.world
        places = list(cover_destinations(self._statement, (destination,), world, frozenset(self._imagined)))
        if self._imagined:
            places = [place for place in places if place.member in self._imagined]
        return places

    def _confirm(self, place: Covered, witness: Witness) -> Counterexample | None:
        """Ask both engines. Return None if the verdict has not changed, or if it is unknown."""
        wrong = self._statement.breaks
        for question in self._proof.questions(place, witness):
            try:
                was, now = (side.decide(question) for side in (self._comparison.old, self._comparison.new))
            except QuestionError as error:
                self._note(f"{question} could not be decided: {error}")
                continue
            verdicts = [dict(decision.ways).get(place.member, decision.allowed) for decision in (was, now)]
            if verdicts == [not wrong, wrong]:
                labels = self._test.labels_for(witness.cell, is_selected=self._statement.is_about_named)
                is_future = self._test.is_future(witness.cell, self._comparison.callers)
                account = str(question.source) if is_future else None
                imagined = self._imagined.get(place.member)
                return self._proof.describe(question, now, imagined, labels or {}, account=account)
            if wrong and SOURCE_LABELS in witness.request.values and not self._statement.include_future:
                continue  # only a pod that does not exist yet has such labels
            asked = ", ".join(authorizers_in(place.entrance.layers))
            self._note(f"it depends on the answer of {asked}" if asked else f"{question} may break it")
        return None

    def _consider(self, doubt: ComparisonDoubt) -> None:
        """Turn a doubt of the comparison into a doubt of the statement, if the statement covers its subject."""
        if doubt.reason in _ABOUT_NO_STATEMENT or self._doubt is not None:
            return
        if doubt.reason is DoubtReason.TIME:
            self._is_about_destinations = any(map(self._places, self._comparison.pairing.pairs))
            if self._is_about_destinations or self._comparison.pairing.is_late:
                self._note(_NO_TIME)
        if doubt.difference is not None:
            if doubt.difference.new.allowed is self._statement.breaks and self._places(doubt.difference.pair):
                self._note(f"{doubt.subject} may decide otherwise")
            return
        names = {f"{pair.kind}:{pair.members[0]}": pair for pair in self._comparison.pairing.pairs}
        pair = names.get(doubt.subject)
        if pair is not None and self._places(pair):
            self._note(f"{doubt.subject} has too many cases, or depends on parts that are not compared")
        elif doubt.reason is DoubtReason.LABELS:
            self._is_about_destinations = False
            self._note(f"policies select {doubt.subject} by labels that only a cluster adds")

    def _note(self, doubt: str) -> None:
        self._doubt = self._doubt or doubt
