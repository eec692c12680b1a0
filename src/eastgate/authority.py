"""The authority: manifests in, answers out. What the command line and the Python API stand on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, BinaryIO, cast

from eastgate import dialects
from eastgate.decisions import Decision
from eastgate.diagnostics import Diagnostic, Reporter, render_all
from eastgate.dialects import Policy
from eastgate.dialects import rejected as rejection
from eastgate.dialects.base import Condition
from eastgate.engine.engine import Engine
from eastgate.policy import UNOPPOSED, AskAll, Attachment, Known, Layer, PolicyRef, Request, Stances
from eastgate.policy.attributes import Attribute
from eastgate.questions import (
    LABELS_UNKNOWN,
    NOT_CONSIDERED,
    POLICY_REJECTED,
    Arrival,
    Question,
    QuestionError,
    arrivals,
    callers_of,
)
from eastgate.settings import Settings, SettingsError
from eastgate.sources import Bounds, Document, Reading, read
from eastgate.unconsidered import Handling, Standing, Unconsidered, UnreadObjects, could_change, standing, told, unread
from eastgate.world import Manifest, Workload, World, WorldObject, interpret
from eastgate.world.points import Point

if TYPE_CHECKING:
    from eastgate.tokens import KeySource

__all__ = ["Authority", "ManifestError", "Manifests", "load", "read_documents", "read_manifests"]


class ManifestError(ValueError):
    """Manifests with errors. `diagnostics` has all of them, of all documents."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(render_all(diagnostics))
        self.diagnostics = list(diagnostics)


@dataclass(slots=True)
class Manifests:
    """What was read by some settings, sorted into what exists and what is demanded; and everything that is wrong with
    it."""

    settings: Settings = field(default_factory=Settings)
    objects: list[WorldObject] = field(default_factory=list)
    policies: list[Policy] = field(default_factory=list)
    reporter: Reporter = field(default_factory=Reporter)
    rejected: list[tuple[Document, list[Diagnostic]]] = field(default_factory=list)
    replaced: list[tuple[Document, list[Diagnostic]]] = field(default_factory=list)
    broken: list[tuple[Document, list[Diagnostic]]] = field(default_factory=list)
    """What is no policy and has errors."""
    unread: UnreadObjects = field(default_factory=UnreadObjects)
    unused: int = 0
    excluded: int = 0
    _documents: dict[Policy, Document] = field(default_factory=dict)

    def add(self, document: Document) -> None:
        """Take in one document."""
        found = Reporter()
        if (kind := dialects.unread(document)) is not None:
            self.unread.found.append(unread(kind, document))
        elif dialects.is_policy(document):
            policy = dialects.read_policy(document, self.settings, found)
            if policy is None:
                self.rejected.append((document, found.errors))
            else:
                self.policies.append(policy)
                self._documents[policy] = document
        else:
            declared = _declared(document, self.settings, found)
            if declared is not None:
                self.objects.append(declared)
            elif not found.errors:
                self.unused += 1
            if found.errors:
                (self.rejected if dialects.is_route(document) else self.broken).append((document, found.errors))
        self.reporter.found.extend(self._news(found))

    def settle(self) -> None:
        """Everything has been read: what can be said only now."""
        if any(dialects.is_examined(policy) for policy in self.policies):
            for policy, finding in dialects.examine(self.policies, self.settings, World.of(self.objects)):
                self.reporter.found.append(finding)
                if policy is not None and finding.is_error:
                    self._reject(policy, finding)
        self._attribute()

    @property
    def strays(self) -> list[Diagnostic]:
        """The errors that are no policy's: without what they are in, nobody knows what exists or is demanded."""
        theirs = {id(error) for _, errors in (*self.rejected, *self.replaced) for error in errors}
        return [error for error in self.reporter.errors if id(error) not in theirs]

    @property
    def unsure(self) -> list[tuple[Document, list[Diagnostic]]]:
        """Routes with errors, and objects that are written twice: nobody knows what exists of them."""
        return [one for one in self.rejected if not dialects.is_policy(one[0])]

    @property
    def demanded(self) -> list[Policy]:
        """The policies, and what those with errors come to: each closes what it targets."""
        return [*self.policies, *(dialects.reject(document, errors) for document, errors in self.rejected)]

    def keep(self, good: Mapping[PolicyRef, Policy]) -> None:
        """Put policies that were read before in the place of those with errors that have their names."""
        closing = zip(self.rejected, (dialects.reject(*one).ref for one in self.rejected), strict=True)
        known = [(one, good[ref]) for one, ref in closing if ref in good]
        self.policies += [policy for _, policy in known]
        self._documents |= {policy: document for (document, _), policy in known}
        self.replaced += [one for one, _ in known]
        self.rejected = [one for one in self.rejected if not any(one is other for other in self.replaced)]

    def _attribute(self) -> None:
        """Reject the policies that have errors which their reader found, and did not give up for."""
        strays = self.strays
        if not strays:
            return
        good: dict[str, list[Policy]] = {}
        for policy in self._documents:
            good.setdefault(policy.span.file, []).append(policy)
        for error in strays:
            span = error.span
            if span is None:
                continue
            known = next((errors for document, errors in self.rejected if document.span.holds(span)), None)
            whose = next((one for one in good.get(span.file, ()) if one.span.holds(span)), None)
            if known is not None:
                known.append(error)
            elif whose is not None:
                self._reject(whose, error)

    def _reject(self, policy: Policy, error: Diagnostic) -> None:
        document = self._documents[policy]
        known = next((errors for one, errors in self.rejected if one is document), None)
        if known is not None:
            known.append(error)
            return
        self.policies = [one for one in self.policies if one is not policy]
        self.rejected.append((document, [error]))

    def _news(self, found: Reporter) -> list[Diagnostic]:
        """What was found at places that nothing was said of yet: one mistake is told once, by whoever saw it first."""
        if not found.found:
            return []
        told = {(d.span.file, d.span.line, d.span.column) for d in self.reporter if d.span is not None}
        return [d for d in found if d.span is None or (d.span.file, d.span.line, d.span.column) not in told]


def _declared(document: Document, settings: Settings, reporter: Reporter) -> WorldObject | None:
    if document.data is None:
        return dialects.read_object(document, settings, reporter)
    manifest = cast("Manifest", document)
    declared = interpret(manifest, reporter, settings.namespace)
    if declared is not None:
        dialects.inspect(manifest, declared, reporter)
    return declared


def read_manifests(
    paths: Iterable[str | PathLike[str]],
    settings: Settings | None = None,
    *,
    stdin: BinaryIO | None = None,
    on_file: Callable[[int, int], None] | None = None,
    bounds: Bounds | None = None,
) -> Manifests:
    """Read files, folders and `-` (standard input). Never raises for what is in them: see `reporter`."""
    chosen = settings or Settings()
    reading = read_documents(paths, chosen, stdin=stdin, on_file=on_file, bounds=bounds, skim=True)
    manifests = sort_documents(reading.documents, chosen, reading.reporter, reading.twice)
    manifests.unused += reading.unused
    manifests.excluded = reading.excluded
    return manifests


def read_documents(
    paths: Iterable[str | PathLike[str]],
    settings: Settings,
    *,
    stdin: BinaryIO | None = None,
    on_file: Callable[[int, int], None] | None = None,
    bounds: Bounds | None = None,
    skim: bool = False,
) -> Reading:
    """Read documents as they were written. With `skim`, those of kinds that are not used are only counted."""
    return read(
        paths,
        positioned=dialects.reads,
        matters=dialects.matters,
        same=_says_the_same,
        skim=skim,
        namespace=settings.namespace,
        stdin=stdin,
        on_file=on_file,
        bounds=bounds,
    )


def _says_the_same(first: Document, second: Document) -> bool:
    """Whether two documents declare the very same thing to exist; of policies there must be one."""
    if first.data is None or second.data is None:
        return False
    if dialects.unread(first) is not None:
        return first.data == second.data
    declared = [interpret(cast("Manifest", one), Reporter(), one.default_namespace) for one in (first, second)]
    return declared[0] is not None and declared[0] == declared[1]


def sort_documents(
    documents: Iterable[Document],
    settings: Settings,
    reporter: Reporter,
    twice: Iterable[tuple[Document, Diagnostic]] = (),
) -> Manifests:
    """What exists, and what is demanded. `twice` are objects that contradict a document of the same name."""
    manifests = Manifests(settings, reporter=reporter)
    for document in documents:
        manifests.add(document)
    for document, error in twice:
        if not dialects.is_policy(document):
            manifests.rejected.append((document, [error]))
    manifests.settle()
    return manifests


class Authority:
    """A world, the policies on it, and an engine that decides by them. A change of the world is in force at once."""

    def __init__(
        self,
        manifests: Manifests,
        settings: Settings | None = None,
        keys: KeySource | None = None,
        *,
        strict: bool = True,
        unread: Handling = Handling.ERROR,
    ) -> None:
        """Raises ManifestError where a manifest has errors: a policy that cannot be understood is never ignored.

        Without `strict`, a policy with errors closes what it targets: `decide` raises QuestionError for a question
        about that, and answers others. `unread` says what becomes of answers that objects of unread kinds could change;
        by default they raise QuestionError.

        The settings are those that the manifests were read with; raises SettingsError where others are given. `keys`
        are those of token issuers; without them no token is accepted, and claims stand for one.
        """
        if manifests.reporter.errors if strict else manifests.strays:
            raise ManifestError(manifests.reporter.errors)
        if settings is not None and settings != manifests.settings:
            raise SettingsError(_differing(manifests.settings, settings))
        self._settings = manifests.settings
        self._keys = keys
        self.unread = unread
        self.unread_objects = manifests.unread
        self.warnings = [d for d in manifests.reporter if not d.is_error]
        self._world = World.of(manifests.objects)
        self._engine: Engine[Policy] = Engine(self._world, manifests.demanded, self._assemble, self._stances)

    @property
    def settings(self) -> Settings:
        """The settings that manifests were read with, and that decide."""
        return self._settings

    @property
    def keys(self) -> KeySource | None:
        """The keys of token issuers."""
        return self._keys

    @property
    def world(self) -> World:
        """What exists. What is put into it or removed from it counts from the next question on."""
        return self._world

    @property
    def engine(self) -> Engine[Policy]:
        """What decides."""
        return self._engine

    def _assemble(self, attached: Sequence[Attachment[Policy]], stances: Stances) -> list[Layer]:
        return dialects.assemble(attached, self.settings, self.world, stances)

    def _stances(self, workload: Workload, attached: Sequence[Attachment[Policy]]) -> Stances:
        return dialects.stances(workload, attached, self.settings, self.world)

    def place(self, addresses: Mapping[str, str]) -> None:
        """Have these workloads run at these addresses, on one machine: see `World.place`."""
        self.world.place(addresses)

    @property
    def policies(self) -> Sequence[Policy]:
        """Every policy, in the order of their names."""
        return self.engine.policies

    def decide(self, question: Question) -> Decision:
        """The answer to a question. Raises QuestionError where it cannot be decided.

        It cannot where a policy with errors has a say in it, and where `unread` says so of what is not read.
        """
        decisions = self._decisions(question)
        broken = self.engine.count(rejection.Policy) > 0
        if broken and (found := self._unsure_of_caller(question)):
            raise _undecidable(found)
        closed = {id(one): found for one in decisions if broken and (found := self.rejected_at(one.arrival.points))}
        sure = next((one for one in decisions if not one.allowed and id(one) not in closed), None)
        if closed and sure is None:
            raise _undecidable(next(iter(closed.values())))
        for one in decisions:
            for point in one.arrival.points:
                if uncertain := self.engine.uncertain(point):
                    raise _unlabelled(point, uncertain[0])
        decision = self._answer(question, decisions, sure)
        if standing(decision.unconsidered, self.unread, allowed=decision.allowed) is Standing.UNDECIDED:
            raise _not_considered(decision)
        return decision

    def _unsure_of_caller(self, question: Question) -> list[rejection.Policy]:
        """What leaves open who the pod is that calls: an object of its namespace with errors, or written twice."""
        if not question.source.startswith("pod:"):
            return []
        callers = callers_of(question, self.world, self.settings).workloads
        return [one for one in self.rejected_at([caller.key for caller in callers]) if not one.is_policy]

    def enforced(self, question: Question) -> Decision:
        """What proxies do that enforce the policies: what a policy with errors targets is closed."""
        return self._answer(question, self._decisions(question))

    def _decisions(self, question: Question) -> list[Decision]:
        return [self._arrive(question, arrival) for arrival in arrivals(question, self.world, self.settings)]

    def _answer(self, question: Question, decisions: Sequence[Decision], sure: Decision | None = None) -> Decision:
        ways: dict[str, bool] = {}
        for decision in decisions:
            where = decision.arrival.where
            ways[where] = decision.allowed and ways.get(where, True)
        deciding = sure or next((decision for decision in decisions if not decision.allowed), decisions[0])
        points = {point for one in decisions for point in one.arrival.points}
        return replace(deciding, ways=tuple(ways.items()), unconsidered=self._unconsidered(question, points))

    def _unconsidered(self, question: Question, points: Iterable[Point]) -> Unconsidered:
        rejected = self.engine.count(rejection.Policy)
        if not self.unread_objects.found:
            return Unconsidered(rejected=rejected)
        callers = callers_of(question, self.world, self.settings)
        return self.unread_objects.about(points, callers, self.world, rejected=rejected)

    @property
    def rejected(self) -> Sequence[rejection.Policy]:
        """The policies that cannot be read, each of which closes what it targets."""
        return [policy for policy in self.policies if isinstance(policy, rejection.Policy)]

    def rejected_at(self, points: Iterable[Point]) -> list[rejection.Policy]:
        """The policies that cannot be read and that are about some of these points."""
        found = (one.policy for point in points for one in self.engine.attached(point))
        return list({one.ref: one for one in found if isinstance(one, rejection.Policy)}.values())

    def _arrive(self, question: Question, arrival: Arrival) -> Decision:
        """ALL points on the way must allow; the first denial decides, or the last point that accepted."""
        programs = [self.engine.program(point) for point in arrival.points]
        layers = tuple(layer for program in programs for layer in program.layers)
        request = _without_others(arrival.request, question, layers)
        if _asks_schemes(layers):
            from eastgate.answers import with_answers  # few questions need it, and it brings much along

            request = with_answers(request, question, layers, self.world, self.settings, self.keys)
        arrival = replace(arrival, request=request)
        accepted = UNOPPOSED
        for program in programs:
            outcome = program.outcome(program.decide(arrival.request))
            if outcome.rule is not None or not outcome.allowed:
                accepted = outcome
            if not outcome.allowed:
                break
        return Decision(question, arrival, accepted, layers, tell=partial(self._conditions, arrival))

    def _conditions(self, arrival: Arrival) -> tuple[tuple[str, Condition], ...]:
        """What the policies on the way would show in their status."""
        attached = (one.policy for point in arrival.points for one in self.engine.attached(point))
        beside = self.policies
        return tuple(
            (str(policy.ref), condition)
            for policy in attached
            for condition in dialects.conditions(policy, beside, self.settings, self.world)
        )


def _undecidable(policies: Sequence[rejection.Policy]) -> QuestionError:
    policy = policies[0]
    causes = [error for one in policies for error in one.errors]
    is_about = "what it targets" if policy.is_policy else "what it may be about"
    message = f"{policy.ref} cannot be read, so that nothing can be said of {is_about}"
    return QuestionError(
        POLICY_REJECTED, message, f"mend it ({policy.span.place}), or ask about something else", causes
    )


def _unlabelled(point: Point, policy: Policy) -> QuestionError:
    message = f"{policy.ref} selects by a label that a cluster adds to pods, and {point} is derived from a template"
    return QuestionError(LABELS_UNKNOWN, message, f"give real Pods, or mend it ({policy.span.place})")


def _not_considered(decision: Decision) -> QuestionError:
    lines = "; ".join(told(decision.unconsidered)).removeprefix("not considered: ")
    first = could_change(decision.unconsidered, allowed=decision.allowed)[0].unread
    message = f"what is not read could change the answer: {lines}"
    way_out = f"--unread warn answers without {first.kind.kind} {first.document.name}"
    return QuestionError(NOT_CONSIDERED, message, way_out)


def _differing(reading: Settings, deciding: Settings) -> str:
    read_with, given = reading.to_json(), deciding.to_json()
    name = next(name for name in given if given[name] != read_with[name])
    return f"the manifests were read with {name}: {read_with[name]}, and are to be decided with {name}: {given[name]}"


def _asks_schemes(layers: Sequence[Layer]) -> bool:
    stages = (stage for layer in layers for chain in layer.chains for stage in chain.stages)
    return any(ask.scheme is not None for stage in stages if isinstance(stage, AskAll) for ask in stage.asks)


def _without_others(request: Request, question: Question, layers: Sequence[Layer]) -> Request:
    """The headers, and the query of the path, that are given are all that there are."""
    named = {"header": question.headers is not None, "query parameter": question.path is not None}
    if not any(named.values()):
        return request
    looked_at = frozenset().union(*(layer.looks_at for layer in layers))
    absent: dict[Attribute, Known] = {a: None for a in looked_at if named.get(a.name) and a not in request.values}
    return Request({**request.values, **absent}, request.answers) if absent else request


def load(
    *paths: str | PathLike[str],
    settings: Settings | None = None,
    keys: KeySource | None = None,
    follow: bool = False,
    exclude: Iterable[str] = (),
    strict: bool = True,
    unread: Handling = Handling.ERROR,
) -> Authority:
    """Read manifests and build an authority on them. Raises ManifestError with everything that is wrong.

    With `follow`, links in folders are followed that lead out of them; `exclude` are patterns of what is left out.
    `strict` and `unread` are those of `Authority`.
    """
    manifests = read_manifests(paths, settings, bounds=Bounds.of(paths, follow=follow, exclude=exclude))
    return Authority(manifests, settings, keys, strict=strict, unread=unread)
