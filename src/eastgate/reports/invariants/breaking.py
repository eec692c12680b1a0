"""Whether a change breaks a statement: by a request that fits it, and whose verdict the change made the wrong one.

That is looked for among the differences between the authority without the change and the one with it, so that a
statement which was broken before is broken by a change again only where it gets worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from eastgate.api.authority import Authority
from eastgate.api.questions import QuestionError
from eastgate.cluster import ROUTE_KINDS, PodNamed, PodsMatching, PodsOfAccount, PodsOfService, PodsOwnedBy, Target
from eastgate.cluster.points import NamedPoint
from eastgate.cluster.targets import HostNamed, RulesOfGateway, RulesOfRoute
from eastgate.ir import Predicate, authorizers_in
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.destinations import Destination
from eastgate.reach.differences import (
    AuthorityComparison,
    ComparisonDoubt,
    DoubtReason,
    VerdictDifference,
    compare_workloads,
)
from eastgate.reach.endings import Spelling
from eastgate.reach.pairing import Pair, differing_objects, go_on
from eastgate.reach.reachability import Reachability
from eastgate.reach.searching import Witness, witnesses
from eastgate.records import dataclass
from eastgate.reports.invariants.callers import CallerTest, TooManyLabels
from eastgate.reports.invariants.covering import Covered, cover_destinations, covers_of, find_missing
from eastgate.reports.invariants.future import ImaginedPod, imagine
from eastgate.reports.invariants.labels import TooManyLabellings
from eastgate.reports.invariants.model import Statement
from eastgate.reports.invariants.proving import Counterexample, StatementProof
from eastgate.reports.invariants.requests import requests_at
from eastgate.symbolic.simplify import both
from eastgate.symbolic.witnesses import GaveUp

__all__ = ["Breach", "changed_targets", "find_breach", "named_callers"]

_ABOUT_NO_PODS = (NamedPoint, HostNamed, RulesOfGateway, RulesOfRoute)
_IN_A_NAMESPACE = (PodsMatching, PodNamed, PodsOfAccount, PodsOfService, PodsOwnedBy)
_ABOUT_EXISTING = frozenset({"Backend", "ReferenceGrant", "ServiceAccount", "XBackend"})
_IN_ITS_NAMESPACE = frozenset({*ROUTE_KINDS, "Service"})
_ABOUT_NO_STATEMENT = frozenset({DoubtReason.HOST, DoubtReason.NETWORK, DoubtReason.UNREAD})
_NO_TIME = "there was no time left to find out"
_TOO_MANY_LABELS = "policies select by too many labels to tell for workloads that do not exist yet"


@dataclass(frozen=True, slots=True)
class Breach:
    """The effect of a change on a statement: a counterexample that the change makes one, or a doubt, or nothing."""

    counterexample: Counterexample | None = None
    doubt: str | None = None


def named_callers(statements: Iterable[Statement], authority: Authority) -> tuple[set[str], set[str]]:
    """Return the identities and the namespaces that statements name, which need cells in a comparison."""
    tests = [_test(statement, authority) for statement in statements]
    identities = {identity for test in tests for identity in test.identities}
    return identities, {namespace for test in tests for namespace in test.namespaces}


def _test(statement: Statement, authority: Authority) -> CallerTest:
    return CallerTest(statement.callers, authority.world, authority.settings.trust_domain)


def find_breach(
    comparison: AuthorityComparison,
    statement: Statement,
    targets: Sequence[Target],
    is_late: Callable[[], bool] = go_on,
) -> Breach:
    """Find out whether a change breaks a statement, first for what exists, then for what may come.

    `comparison` is of all that exists, without the change and with it, with cells for the callers that the statement
    names, and `targets` are its `changed_targets`. What was broken before, and is no more than that, is no breach.
    """
    missing = next(find_missing(statement, comparison.new.world), None)
    doubt = missing.message if missing is not None else _selects_otherwise(comparison, statement)
    if doubt is not None:
        return Breach(doubt=doubt)
    try:
        breach = _BreachSearch(comparison, statement, {}, is_late).run()
        if (
            breach.counterexample is not None
            or statement.existing_only
            or not _may_select(comparison, statement, targets)
        ):
            return breach
        future = _find_in_future(comparison, statement, is_late)
    except TooManyLabels:
        return Breach(doubt="namespaces are selected by too many labels")
    return future if future.counterexample is not None or breach.doubt is None else breach


def _selects_otherwise(comparison: AuthorityComparison, statement: Statement) -> str | None:
    """Return why a statement may be about others than before, whose verdicts need not have changed."""
    callers, destinations = statement.callers, statement.destinations
    selectors = (callers.of.namespaces, callers.without.namespaces, destinations.namespaces)
    keys = frozenset(key for selector in selectors if selector is not None for key in selector.keys)
    services = frozenset(name.key for name in destinations.services)
    for name in differing_objects(comparison.old, comparison.new):
        if name.kind == "Namespace":
            was, now = (side.world.namespace(name.name).labels for side in (comparison.old, comparison.new))
            if any(was.get(key) != now.get(key) for key in keys):
                return f"it selects namespaces by labels, and those of {name.name} change"
        elif name.kind == "Service" and f"{name.namespace}/{name.name}" in services:
            return f"it is about the Service {name.namespace}/{name.name}, which changes"
    return None


def changed_targets(comparison: AuthorityComparison) -> list[Target]:
    """Return the targets of the policies that have changed, and of those that refer to them."""
    changed = frozenset(comparison.pairing.changed)
    policies = (policy for side in (comparison.old, comparison.new) for policy in side.policies)
    return [
        target
        for policy in policies
        if policy.ref in changed or not changed.isdisjoint(policy.references)
        for target in policy.targets
    ]


def _may_select(comparison: AuthorityComparison, statement: Statement, targets: Sequence[Target]) -> bool:
    """Return whether what has changed may matter to pods that do not exist yet and that a statement is about."""
    sides = comparison.old, comparison.new
    world = comparison.new.world
    covers = covers_of(statement, world)
    if not covers:
        return False
    changed = frozenset(comparison.pairing.changed)
    if any(ref in side.engine.network_refs for side in sides for ref in changed):
        return True
    objects = [name for name in differing_objects(*sides) if name.kind not in _ABOUT_EXISTING]
    if not all(name.kind in _IN_ITS_NAMESPACE for name in objects):
        return True
    in_use = frozenset(world.namespaces_in_use())

    def is_in_cover(namespace: str) -> bool:
        return any(cover.namespaces.matches(world.namespace(namespace).labels) for cover in covers)

    def is_covered(target: Target) -> bool:
        if isinstance(target, _ABOUT_NO_PODS):
            return False
        if not isinstance(target, _IN_A_NAMESPACE) or target.namespace not in in_use:
            return True
        return is_in_cover(target.namespace)

    if any(is_in_cover(name.namespace) for name in objects):
        return True
    return any(map(is_covered, targets))


def _find_in_future(comparison: AuthorityComparison, statement: Statement, is_late: Callable[[], bool]) -> Breach:
    """Compare what does not exist yet: the same pods are imagined on both sides."""
    old, new = comparison.old, comparison.new
    covers = covers_of(statement, new.world)
    known, namespaces = named_callers((statement,), new)
    doubt = None
    try:
        worlds = [pods for side in (new, old) for pods in imagine(side, covers)]
    except TooManyLabellings:
        return Breach(doubt=_TOO_MANY_LABELS)
    for pods in worlds:
        if is_late():
            return Breach(doubt=_NO_TIME)
        imagined = {pod.key: pod for pod in pods}
        objects = {declared.id: declared for pod in pods for declared in pod.objects}
        with ExitStack() as stack:
            for side in (old, new):
                stack.enter_context(side.imagining(objects.values()))
            differing = compare_workloads(
                old,
                new,
                frozenset(imagined),
                same_network=comparison.pairing.same_network,
                known=known,
                namespaces=namespaces,
                is_late=is_late,
            )
            breach = _BreachSearch(differing, statement, imagined, is_late).run()
        if breach.counterexample is not None:
            return breach
        doubt = doubt or breach.doubt
    return Breach(doubt=doubt)


class _BreachSearch:
    """The search for a request that fits a statement, and whose verdict has become the one that breaks it."""

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
        self._reach = Reachability(comparison.new, callers=comparison.callers)
        self._doubt: str | None = None

    def run(self) -> Breach:
        """Look at all that differs and is meant."""
        differences = [each for each in self._comparison.differences if self._may_break(each)]
        sets = self._comparison.callers
        meant = self._test.choose(sets, meant=self._statement.is_about_named) if differences else []
        for difference in differences:
            for callers in meant:
                some = callers.callers & difference.callers
                for place, witness in self._candidates(difference, some, callers.where) if some else ():
                    counterexample = self._confirm(place, witness)
                    if counterexample is not None:
                        return Breach(counterexample)
        for doubt in self._comparison.doubts:
            self._consider(doubt)
        return Breach(doubt=self._doubt)

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
            fitting = both((requests_at(self._statement, place.entrance), where, difference.when))
            try:
                for witness in witnesses(self._reach, place.entrance, callers, fitting, allowed=self._statement.breaks):
                    yield place, witness
            except GaveUp:
                self._note(f"there are too many cases to look at, at {place}")

    def _places(self, pair: Pair) -> list[Covered]:
        entrances = tuple(now for _, now in pair.entrances)
        destination = Destination(pair.kind, pair.members, entrances)
        world = self._comparison.new.world
        places = list(cover_destinations(self._statement, (destination,), world, frozenset(self._imagined)))
        if self._imagined:
            places = [place for place in places if place.member in self._imagined]
        return places

    def _confirm(self, place: Covered, witness: Witness) -> Counterexample | None:
        """Ask both engines; None where the verdict is not a new one, or nobody can tell."""
        wrong = self._statement.breaks
        for question in self._proof.questions(place, witness):
            try:
                was, now = (side.decide(question) for side in (self._comparison.old, self._comparison.new))
            except QuestionError as error:
                self._note(f"{question} could not be decided: {error}")
                continue
            verdicts = [dict(decision.ways).get(place.member, decision.allowed) for decision in (was, now)]
            if verdicts == [not wrong, wrong]:
                labels = self._test.labels_for(witness.cell, meant=self._statement.is_about_named)
                return self._proof.describe(question, now, self._imagined.get(place.member), labels or {})
            asked = ", ".join(authorizers_in(place.entrance.layers))
            self._note(f"it depends on what {asked} answers" if asked else f"{question} may break it")
        return None

    def _consider(self, doubt: ComparisonDoubt) -> None:
        """Take a doubt of the comparison for one of the statement, where it is about what is meant."""
        if doubt.reason in _ABOUT_NO_STATEMENT or self._doubt is not None:
            return
        if doubt.reason is DoubtReason.TIME:
            self._note(_NO_TIME)
        if doubt.difference is not None:
            if doubt.difference.new.allowed is self._statement.breaks and self._places(doubt.difference.pair):
                self._note(f"{doubt.subject} may decide otherwise")
            return
        names = {f"{pair.kind}:{pair.members[0]}": pair for pair in self._comparison.pairing.pairs}
        pair = names.get(doubt.subject)
        if pair is not None and self._places(pair):
            self._note(f"{doubt.subject} has too many cases, or depends on what is not compared")
        elif doubt.reason is DoubtReason.LABELS:
            self._note(f"policies select {doubt.subject} by labels that only a cluster adds")

    def _note(self, doubt: str) -> None:
        self._doubt = self._doubt or doubt
