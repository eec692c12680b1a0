"""Whether a statement holds: for all requests, or not, by a request that the engine confirms; or nobody can tell."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from eastgate.api.authority import Authority
from eastgate.api.decisions import Decision
from eastgate.api.questions import QuestionError
from eastgate.cluster.points import Point
from eastgate.cluster.question import Question
from eastgate.cluster.targets import BackendNamed, RouteNamed
from eastgate.diagnostics import Diagnostic
from eastgate.ir import authorizers_in
from eastgate.ir.attributes import PATH, SENT_PATH
from eastgate.reach.destinations import DestinationKind
from eastgate.reach.questions import question_of
from eastgate.reach.reachability import Reachability
from eastgate.reach.searching import Witness, witnesses
from eastgate.records import dataclass
from eastgate.reports.explain import explain_rule
from eastgate.reports.invariants import codes
from eastgate.reports.invariants.callers import CallerTest, MeantCallers, TooManyLabels
from eastgate.reports.invariants.covering import Covered, covered, covers_of, find_missing
from eastgate.reports.invariants.future import ImaginedPod, imagine
from eastgate.reports.invariants.labels import TooManyLabellings
from eastgate.reports.invariants.model import Mode, Statement
from eastgate.reports.invariants.requests import requests_at, spelled_path
from eastgate.symbolic.simplify import both
from eastgate.symbolic.witnesses import GaveUp
from eastgate.unread import Callers as UnreadCallers
from eastgate.unread import Handling, could_change, list_unconsidered

__all__ = ["Counterexample", "Finding", "Standing", "prove"]


class Standing(enum.StrEnum):
    """What is known of a statement."""

    HOLDS = "holds"
    BROKEN = "broken"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A request that breaks a statement, as the engine decides it.

    `imagined` is its destination, where that does not exist yet; `labels` are those of the caller's namespace, if that
    does not. `lines` show the rule that decides, and `policies` are those of which one would have to change.
    """

    question: Question
    verdict: str
    reason: str
    policy: str | None
    rule: int | None
    file: str | None
    line: int | None
    lines: tuple[str, ...]
    policies: tuple[str, ...]
    imagined: ImaginedPod | None = None
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to a statement: `why` it is not proven, or the counterexample that breaks it."""

    standing: Standing
    why: str | None = None
    counterexample: Counterexample | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


def prove(authority: Authority, statement: Statement) -> Finding:
    """Find out whether a statement holds for all requests."""
    world = authority.world
    missing = tuple(find_missing(statement, world))
    if missing:
        return Finding(Standing.NOT_PROVEN, missing[0].message, diagnostics=missing)
    imagined: list[ImaginedPod] = []
    unproven: str | None = None
    if not statement.existing_only:
        try:
            imagined = imagine(authority, covers_of(statement, world))
        except TooManyLabellings:
            unproven = (
                "it is not proven for workloads that do not exist yet: policies select by too many labels "
                "(write existingOnly: true to leave them out)"
            )
    objects = [each for pod in imagined for each in (pod.namespace, pod.pod) if each is not None]
    with authority.imagining(objects):
        finding = _Proof(authority, statement, imagined).run()
    if finding.standing is Standing.HOLDS and unproven is not None:
        return Finding(Standing.NOT_PROVEN, unproven, diagnostics=finding.diagnostics)
    return finding


class _Proof:
    def __init__(self, authority: Authority, statement: Statement, imagined: Sequence[ImaginedPod]) -> None:
        self._authority = authority
        self._statement = statement
        self._imagined = {pod.key: pod for pod in imagined}
        domain = authority.settings.trust_domain
        self._test = CallerTest(statement.callers, authority.world, domain)
        self._reach = Reachability(authority, self._test.identities, self._test.namespaces)
        self._unconfirmed: str | None = None
        self._breaks = statement.mode is not Mode.ALWAYS  # the verdict that breaks it: allowed

    def run(self) -> Finding:
        """Look for a request that breaks the statement; then for what keeps its absence from being a proof."""
        places = sorted(
            covered(self._statement, self._reach, self._imagined), key=lambda place: place.member in self._imagined
        )
        diagnostics = tuple(self._selecting_nothing(places))
        if not places:
            return Finding(
                Standing.NOT_PROVEN, "it is about nothing that the manifests declare", diagnostics=diagnostics
            )
        try:
            callers = self._test.choose(self._reach.callers, meant=self._statement.mode is not Mode.ONLY)
        except TooManyLabels:
            return Finding(Standing.NOT_PROVEN, "namespaces are selected by too many labels", diagnostics=diagnostics)
        unproven: str | None = None
        for place in places:
            try:
                counterexample = self._break(place, callers)
            except GaveUp:
                unproven = unproven or f"there are too many cases to look at, at {place}"
                continue
            if counterexample is not None:
                return Finding(Standing.BROKEN, None, counterexample, diagnostics)
        why = unproven or self._unconfirmed or self._left_out(places)
        return Finding(Standing.HOLDS if why is None else Standing.NOT_PROVEN, why, diagnostics=diagnostics)

    def _selecting_nothing(self, places: Sequence[Covered]) -> Iterator[Diagnostic]:
        statement = self._statement
        if statement.destinations.pods is None or any(p.member not in self._imagined for p in places):
            return
        message = f"no workload that exists has the labels {statement.destinations.pods}"
        if statement.destinations.namespaces.keys:
            message += f" in namespaces {statement.destinations.namespaces}"
        yield Diagnostic(
            codes.SELECTS_NOTHING, message, statement.destinations.span, "look for a label that is misspelt"
        )

    # Requests that break it

    def _break(self, place: Covered, callers: Iterable[MeantCallers]) -> Counterexample | None:
        fitting = requests_at(self._statement, place.entrance)
        for meant in callers:
            where = both((fitting, meant.where))
            for witness in witnesses(self._reach, place.entrance, meant.callers, where, allowed=self._breaks):
                confirmed = self._confirm(place, witness)
                if confirmed is not None:
                    return self._counterexample(place, witness, *confirmed)
        return None

    def _confirm(self, place: Covered, witness: Witness) -> tuple[Question, Decision] | None:
        """Ask the engine about a request; None where it disagrees, or cannot tell."""
        for question in self._questions(place, witness):
            try:
                decision = self._authority.decide(question)
            except QuestionError as error:
                self._unconfirmed = self._unconfirmed or f"{question} could not be decided: {error}"
                continue
            if decision.allowed is self._breaks or dict(decision.ways).get(place.member) is self._breaks:
                return question, decision
            asked = ", ".join(authorizers_in(place.entrance.layers))
            why = f"it depends on what {asked} answers" if asked else "it could not be shown by a request"
            self._unconfirmed = self._unconfirmed or f"{why}: {question}"
        return None

    def _questions(self, place: Covered, witness: Witness) -> Iterator[Question]:
        """Yield ways to ask about a request. Authorizers that are evaluated here answer by themselves."""
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
        to_service = replace(question, to=f"service:{place.service}", port=place.service_port)
        if place.member not in self._imagined:
            yield to_service
        yield replace(question, to=f"pod:{place.member}")

    def _counterexample(
        self, place: Covered, witness: Witness, question: Question, decision: Decision
    ) -> Counterexample:
        span = decision.span
        labels = self._test.labels_for(witness.cell, meant=self._statement.mode is not Mode.ONLY)
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
            self._imagined.get(place.member),
            {key: value for key, value in (labels or {}).items() if "metadata.name" not in key},
        )

    def _to_change(self, decision: Decision) -> list[str]:
        """Return the policies of which one would have to change: who decided, or else who could have."""
        if decision.policy is not None:
            return [decision.policy]
        attached = (each.policy for point in decision.arrival.points for each in self._authority.engine.attached(point))
        return list(dict.fromkeys(str(policy.ref) for policy in attached))

    # What could make it false all the same

    def _left_out(self, places: Sequence[Covered]) -> str | None:
        """Return why no counterexample is no proof: policies with errors, labels that clusters add, unread kinds."""
        authority, world = self._authority, self._authority.world
        points = list(dict.fromkeys(point for place in places for point in self._points(place)))
        if authority.rejected and (rejected := authority.rejected_at(points)):
            return f"{rejected[0].ref} cannot be read ({rejected[0].span.location})"
        for point in points:
            uncertain = authority.engine.uncertain(point)
            if uncertain:
                return (
                    f"{uncertain[0].ref} selects by a label that a cluster adds to pods, as those of {point} may have"
                )
        if not authority.unread_objects.objects or authority.unread in (Handling.WARN, Handling.IGNORE):
            return None
        unconsidered = authority.unread_objects.about(points, UnreadCallers(anybody=True), world)
        if not could_change(unconsidered, allowed=not self._breaks):
            return None
        lines = "; ".join(list_unconsidered(unconsidered))
        return f"what is not read could change it: {lines} (write unread: ignore to do without)"

    def _points(self, place: Covered) -> Iterator[Point]:
        """Yield every point that may decide about what a statement covers, at a place."""
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
