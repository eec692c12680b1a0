"""The proof of a statement: it holds, or fails with a request that the engine confirms, or is not proven."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import QuestionError
from eastgate.basics.collection import no_collection
from eastgate.basics.diagnostics import Diagnostic
from eastgate.cluster import ends
from eastgate.cluster.objects import NAME_LABEL
from eastgate.cluster.points import Point
from eastgate.cluster.question import Question
from eastgate.cluster.targets import BackendNamed, RouteNamed
from eastgate.cluster.unread import Callers as UnreadCallers
from eastgate.cluster.unread import Handling, could_change, list_unconsidered
from eastgate.ir import authorizers_in
from eastgate.ir.attributes import PATH, SENT_PATH, SOURCE_LABELS, SOURCE_WORKLOAD
from eastgate.ir.labels import Selector, labels_of
from eastgate.ir.symbolic.simplify import both
from eastgate.ir.symbolic.witnesses import GaveUp
from eastgate.reach.caller_sets import CallerSet, CallerSets
from eastgate.reach.destinations import DestinationKind
from eastgate.reach.questions import question_of
from eastgate.reach.reachability import Reachability
from eastgate.reach.searching import Witness, witnesses
from eastgate.reports.explain import explain_rule
from eastgate.reports.invariants import codes
from eastgate.reports.invariants.callers import CallerTest, TooManyLabels
from eastgate.reports.invariants.covering import (
    Covered,
    OwnAccess,
    covered,
    covers_of,
    find_missing,
    select_workloads,
)
from eastgate.reports.invariants.future import ImaginedPod, imagine, imagine_callers
from eastgate.reports.invariants.labels import TooManyLabellings
from eastgate.reports.invariants.locating import field_path
from eastgate.reports.invariants.model import Statement
from eastgate.reports.invariants.objects import Counterexample, StatementFinding, StatementStanding
from eastgate.reports.invariants.requests import requests_at, spelled_path

_MAX_CANDIDATES = 64  # requests to imagined workloads that the engine decides one by one
_TOO_MANY_LABELS = (
    "it is not proven for workloads that do not exist yet: policies select by too many labels "
    "(to exclude them, leave out includeFuture)"
)


def prove(authority: Authority, statement: Statement) -> StatementFinding:
    """Prove a statement for all requests: first to existing destinations, then to future ones."""
    missing = tuple(find_missing(statement, authority.world))
    if missing:
        return StatementFinding(StatementStanding.NOT_PROVEN, missing[0].message, diagnostics=missing)
    proof = StatementProof(authority, statement)
    diagnostics = tuple(_selecting_nothing(statement, authority))
    try:
        with no_collection():
            counterexample = proof.check_existing()
            if counterexample is None and statement.include_future:
                counterexample = proof.check_future()
    except TooManyLabels:
        return StatementFinding(
            StatementStanding.NOT_PROVEN, "namespaces are selected by too many labels", diagnostics=diagnostics
        )
    if counterexample is not None:
        return StatementFinding(StatementStanding.BROKEN, None, counterexample, diagnostics)
    return StatementFinding(
        StatementStanding.HOLDS if proof.doubt is None else StatementStanding.NOT_PROVEN,
        proof.doubt,
        diagnostics=diagnostics,
    )


def _selecting_nothing(statement: Statement, authority: Authority) -> Iterator[Diagnostic]:
    """Yield a warning for each selector of destinations or callers that selects nothing."""
    world, help_ = authority.world, "look for a label that is misspelt"
    destinations, callers = statement.destinations, statement.callers
    pods = [(destinations.pods, destinations.namespaces, destinations.span)]
    for group in (callers.of, callers.without) if not statement.include_future else ():
        pods.append((group.pods, group.namespaces or Selector.of(), statement.span))
        known = [namespace.labels for namespace in world.namespaces.values()]
        if group.pods is None and group.namespaces is not None and not any(map(group.namespaces.matches, known)):
            message = f"no namespace that exists has the labels {group.namespaces}"
            yield Diagnostic(codes.SELECTS_NOTHING, message, statement.span, help_)
    for labels, namespaces, span in pods:
        if labels is not None and not select_workloads(world, namespaces, labels):
            where = f" in namespaces {namespaces}" if namespaces.keys else ""
            yield Diagnostic(
                codes.SELECTS_NOTHING, f"no workload that exists has the labels {labels}{where}", span, help_
            )


class _WorldAnswers:
    """All answers of a world, and its selected callers. `imagined` are pods of it that do not exist."""

    def __init__(
        self, authority: Authority, statement: Statement, imagined: Mapping[str, ImaginedPod] = MappingProxyType({})
    ) -> None:
        self.imagined = imagined
        self._include_future = statement.include_future
        self.test = CallerTest(statement, authority.world, authority.settings.trust_domain)
        self.reach = Reachability(authority, self.test.identities, self.test.namespaces)

    def caller(self, question: Question, witness: Witness, labels: Mapping[str, str] | None) -> ImaginedPod | None:
        """Return the imagined pod that makes a request; None if an existing pod may make it."""
        value = witness.request.values.get(SOURCE_WORKLOAD)
        if value is not None and value in self.imagined:
            return self.imagined[str(value)]
        pods = self.test.pods_of(witness.cell)
        if pods:
            return self.imagined[pods[0]] if self.imagined.keys() >= set(pods) else None
        text = witness.request.values.get(SOURCE_LABELS)
        if not self._include_future or text is None or not isinstance(question.source, ends.ServiceAccount):
            return None
        return ImaginedPod.of_caller(question.source, labels_of(str(text)), labels, self.reach.authority.world)


class StatementProof:
    """The search for a request that breaks a statement."""

    def __init__(self, authority: Authority, statement: Statement) -> None:
        self._authority = authority
        self._statement = statement
        self.breaks = statement.breaks
        self.is_selected = statement.is_about_named
        self._is_about_something = False
        self._first_doubt: str | None = None

    @property
    def doubt(self) -> str | None:
        """Return the reason why the absence of a counterexample is not a proof, or None."""
        nothing = "no manifest declares its destinations"
        return self._first_doubt or (None if self._is_about_something else nothing)

    def check_existing(self) -> Counterexample | None:
        """Search for a request to an existing destination."""
        search = _WorldAnswers(self._authority, self._statement)
        places = list(covered(self._statement, search.reach))
        for place, witness in self._candidates(search, places):
            counterexample = self._confirm(search, place, witness)
            if counterexample is not None:
                return counterexample
        self._doubt(self._left_out(places))
        self._is_about_something = bool(places)
        return None

    def check_future(self) -> Counterexample | None:
        """Search for a request to a workload that does not exist yet."""
        authority, statement = self._authority, self._statement
        try:
            callers, beside = imagine_callers(authority, statement.callers)
            worlds = imagine(authority, covers_of(statement, authority.world))
        except TooManyLabellings:
            self._doubt(_TOO_MANY_LABELS)
            return None
        for calling, called in (*((pods, []) for pods in callers), *((beside, pods) for pods in worlds)):
            counterexample = self._among_imagined(calling, called)
            if counterexample is not None:
                return counterexample
        return None

    def _among_imagined(self, calling: list[ImaginedPod], called: list[ImaginedPod]) -> Counterexample | None:
        """Search for a request of imagined pods, to imagined or existing pods."""
        authority, statement = self._authority, self._statement
        imagined = {pod.key: pod for pod in (*calling, *called)}
        objects = {each.id: each for pod in imagined.values() for each in pod.objects}
        with authority.imagining(objects.values()):
            search = _WorldAnswers(authority, statement, imagined)
            places = [
                place
                for place in covered(statement, search.reach, imagined)
                if (place.member in imagined) is bool(called)
            ]
            candidates = list(islice(self._candidates(search, places), _MAX_CANDIDATES + 1))
            self._doubt(self._left_out(places))
        self._is_about_something = self._is_about_something or bool(places)
        for place, witness in candidates[:_MAX_CANDIDATES]:
            pod = imagined.get(place.member)
            with authority.imagining(pod.objects if pod is not None else ()):
                counterexample = self._confirm(search, place, witness, pod)
            if counterexample is not None:
                return counterexample
        return None

    def _doubt(self, why: str | None) -> None:
        """Keep the first reason to doubt that there is no counterexample."""
        self._first_doubt = self._first_doubt or why

    def _candidates(self, search: _WorldAnswers, places: Iterable[Covered]) -> Iterator[tuple[Covered, Witness]]:
        """Yield requests that break the statement by computation. The engine must confirm them."""
        callers = search.test.choose(search.reach.callers, is_selected=self.is_selected)
        for place in places:
            own = OwnAccess.of(place, self._authority.world)
            fitting = requests_at(self._statement, place.entrance, own)
            others = self.others(own, search.test, search.reach.callers)
            peers = search.reach.callers.set_of(search.test.only_pods(frozenset(place.members)))
            try:
                # other replicas of the destination are poor examples and come last
                for some in (others & ~peers, others & peers):
                    for selected_callers in callers:
                        where, each = both((fitting, selected_callers.where)), selected_callers.callers & some
                        for witness in witnesses(search.reach, place.entrance, each, where, allowed=self.breaks):
                            yield place, witness
            except GaveUp:
                self._doubt(f"there are too many cases at {place}")

    def others(self, own: OwnAccess, test: CallerTest, sets: CallerSets) -> CallerSet:
        """Return the callers whose requests to a pod count: not those that are the pod itself, or on its node."""
        if self._statement.include_self or not own.pods:
            return sets.everybody
        return sets.everybody & ~sets.set_of(test.only_pods(own.pods))

    # Confirmation by the engine

    def _confirm(
        self, search: _WorldAnswers, place: Covered, witness: Witness, imagined: ImaginedPod | None = None
    ) -> Counterexample | None:
        """Ask the engine about a request. Return None if it disagrees, or cannot decide."""
        labels = search.test.labels_for(witness.cell, is_selected=self.is_selected)
        for question in self.questions(place, witness):
            caller = search.caller(question, witness, labels)
            asked = question if caller is None else replace(question, source=ends.Pod.of_key(caller.key))
            known = () if imagined is None else imagined.objects
            with self._authority.imagining(each for each in (caller.objects if caller else ()) if each not in known):
                try:
                    decision = self._authority.decide(asked)
                except QuestionError as error:
                    self._doubt(f"{asked} could not be decided: {error}")
                    continue
                if decision.allowed is self.breaks or dict(decision.ways).get(place.member) is self.breaks:
                    is_future = search.test.is_future(witness.cell, search.reach.callers)
                    account = str(asked.source) if is_future else None
                    return self.describe(asked, decision, imagined, labels or {}, caller, account)
            if caller is None and SOURCE_LABELS in witness.request.values and self.breaks:
                continue  # only a pod that does not exist yet has such labels
            authorizers = ", ".join(authorizers_in(place.entrance.layers))
            why = f"it depends on the answer of {authorizers}" if authorizers else "no request could confirm it"
            self._doubt(f"{why}: {asked}")
        return None

    def questions(self, place: Covered, witness: Witness) -> Iterator[Question]:
        """Yield ways to ask about a request: first as a connection, if the statement covers connections.

        An allowed connection is allowed for all requests. A denied one proves nothing about a single request.
        """
        requests = self._statement.requests
        is_http = requests.is_http or requests.tools or requests.mcp_methods
        may_be_bytes = self.breaks and not is_http and place.destination.kind is DestinationKind.POD
        for asked in self._questions(place, witness):
            for question in (*self._from_pods(asked, place), asked):
                if may_be_bytes and question.is_http:
                    yield replace(question, method=None, path=None, host=None, headers=None, claims=None)
                yield question

    def _from_pods(self, question: Question, place: Covered) -> Iterator[Question]:
        """Turn a question of an account into one of a pod with that account, if policies or the statement select pods.

        The pod is not the destination, so that the question is not about access of a pod to itself.
        """
        account = question.source
        groups = self._statement.callers.of, self._statement.callers.without
        is_by_pod = programs_of(self._authority).has_network_policies or any(group.pods is not None for group in groups)
        if not isinstance(account, ends.ServiceAccount) or not is_by_pod:
            return
        pods = (pod for pod in self._authority.world.workloads.values() if pod.is_pod and pod.key not in place.members)
        own = (account.namespace, account.name)
        caller = next((pod for pod in pods if (pod.namespace, pod.service_account) == own), None)
        if caller is not None:
            yield replace(question, source=ends.Pod.of_key(caller.key))

    def _questions(self, place: Covered, witness: Witness) -> Iterator[Question]:
        """Yield ways to ask about a request. Authorizers that Eastgate evaluates itself get no answer."""
        domain = self._authority.settings.trust_domain
        question = question_of(
            place.destination, place.member, place.entrance, witness.cell, witness.request, domain, place.port
        )
        evaluated = authorizers_in(place.entrance.layers)
        answers = {name: answer for name, answer in question.external_auth.items() if name not in evaluated}
        values = witness.request.values
        spelled = spelled_path(values.get(SENT_PATH), values.get(PATH))
        question = replace(
            question,
            path=spelled if spelled is not None else question.path,
            external_auth={**answers, **self._statement.external_auth},
        )
        if place.service is None:
            yield question
            return
        yield replace(question, destination=ends.Service.of_key(place.service), port=place.service_port)
        yield replace(question, destination=ends.Pod.of_key(place.member))

    def describe(
        self,
        question: Question,
        decision: Decision,
        imagined: ImaginedPod | None,
        labels: Mapping[str, str],
        caller: ImaginedPod | None = None,
        account: str | None = None,
    ) -> Counterexample:
        """Return a question that breaks the statement, with the rule that decides it."""
        span = decision.span
        return Counterexample(
            question,
            decision.verdict.value,
            decision.reason,
            decision.policy,
            decision.rule,
            span.file if span is not None else None,
            span.line if span is not None else None,
            tuple(explain_rule(decision)),
            tuple(self._to_change(decision)),
            imagined,
            {key: value for key, value in labels.items() if key != NAME_LABEL},
            self._field(decision),
            caller,
            account,
        )

    def _field(self, decision: Decision) -> str | None:
        """Return the path of the rule that decided, in its policy."""
        origin = decision.origin
        if decision.span is None or origin is None or origin.policy is None:
            return None
        document = self._authority.document_of(origin.policy)
        return field_path(document, decision.span) if document is not None else None

    def _to_change(self, decision: Decision) -> list[str]:
        """Return policies to change; one is enough: the policy that decided, or else those that could have."""
        if decision.policy is not None:
            return [decision.policy]
        attached = (
            each.policy for point in decision.arrival.points for each in programs_of(self._authority).attached(point)
        )
        return list(dict.fromkeys(str(policy.ref) for policy in attached))

    # Doubts

    def _left_out(self, places: Sequence[Covered]) -> str | None:
        """Return the reason why a missing counterexample is not a proof: policies with errors, labels that a cluster
        adds, or unread kinds.
        """
        authority, world = self._authority, self._authority.world
        points = list(dict.fromkeys(point for place in places for point in self._points(place)))
        if authority.rejected and (rejected := authority.rejected_at(points)):
            return f"{rejected[0].ref} cannot be read ({rejected[0].span.location})"
        for point in points:
            uncertain = programs_of(authority).uncertain(point)
            if uncertain:
                return (
                    f"{uncertain[0].ref} selects by a label that a cluster adds to pods, as those of {point} may have"
                )
        if not authority.unread_objects.objects or authority.unread in (Handling.WARN, Handling.IGNORE):
            return None
        unconsidered = authority.unread_objects.about(points, UnreadCallers(anybody=True), world)
        if not could_change(unconsidered, allowed=not self.breaks):
            return None
        lines = "; ".join(list_unconsidered(unconsidered))
        return f"unread objects could change it: {lines} (to accept that, write unread: ignore)"

    def _points(self, place: Covered) -> Iterator[Point]:
        """Yield every point that may decide about the requests of a statement at a place."""
        if place.destination.kind is DestinationKind.POD:
            yield from place.members
            return
        yield from place.destination.points
        if place.destination.kind is DestinationKind.GATEWAY:
            world = self._authority.world
            for route in world.routes.values():
                if any(f"{parent.namespace}/{parent.name}" == place.member for parent in route.parents):
                    yield RouteNamed(route.namespace, route.name, route.kind)
            yield from (BackendNamed(backend.namespace, backend.name) for backend in world.backends.values())
