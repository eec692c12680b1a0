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
from eastgate.dialects.base import Condition
from eastgate.engine.compiled import compile_layers
from eastgate.engine.engine import Engine
from eastgate.policy import OPEN, AskAll, Attachment, Known, Layer, Request, Stances
from eastgate.policy.attributes import Attribute
from eastgate.questions import Arrival, Question, arrivals
from eastgate.settings import Settings, SettingsError
from eastgate.sources import Bounds, Document, Reading, read
from eastgate.world import Manifest, Workload, World, WorldObject, interpret

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
    unused: int = 0
    excluded: int = 0
    _documents: dict[Policy, Document] = field(default_factory=dict)

    def add(self, document: Document) -> None:
        """Take in one document."""
        found = Reporter()
        if dialects.is_policy(document):
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
                self.rejected.append((document, found.errors))
        self.reporter.found.extend(self._news(found))

    def settle(self) -> None:
        """Everything has been read: what can be said only now."""
        if not any(dialects.is_examined(policy) for policy in self.policies):
            return
        errors: dict[Policy, list[Diagnostic]] = {}
        for policy, finding in dialects.examine(self.policies, self.settings, World.of(self.objects)):
            self.reporter.found.append(finding)
            if policy is not None and finding.is_error:
                errors.setdefault(policy, []).append(finding)
        self.policies = [policy for policy in self.policies if policy not in errors]
        self.rejected += [(self._documents[policy], found) for policy, found in errors.items()]

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
    manifests = sort_documents(reading.documents, chosen, reading.reporter)
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
    told = interpret(cast("Manifest", first), Reporter())
    return told is not None and told == interpret(cast("Manifest", second), Reporter())


def sort_documents(documents: Iterable[Document], settings: Settings, reporter: Reporter) -> Manifests:
    """What exists, and what is demanded."""
    manifests = Manifests(settings, reporter=reporter)
    for document in documents:
        manifests.add(document)
    manifests.settle()
    return manifests


class Authority:
    """A world, the policies on it, and an engine that decides by them. A change of the world is in force at once."""

    def __init__(self, manifests: Manifests, settings: Settings | None = None, keys: KeySource | None = None) -> None:
        """Raises ManifestError where a manifest has errors: a policy that cannot be understood is never ignored.

        The settings are those that the manifests were read with; raises SettingsError where others are given. `keys`
        are those of token issuers; without them no token is accepted, and claims stand for one.
        """
        if manifests.reporter.errors:
            raise ManifestError(manifests.reporter.errors)
        if settings is not None and settings != manifests.settings:
            raise SettingsError(_differing(manifests.settings, settings))
        self._settings = manifests.settings
        self._keys = keys
        self.warnings = [d for d in manifests.reporter if not d.is_error]
        self._world = World.of(manifests.objects)
        self._engine: Engine[Policy] = Engine(self._world, manifests.policies, self._assemble, self._stances)

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
        """The answer to a question. Raises QuestionError where it cannot be decided."""
        decisions = [self._arrive(question, arrival) for arrival in arrivals(question, self.world, self.settings)]
        ways: dict[str, bool] = {}
        for decision in decisions:
            where = decision.arrival.where
            ways[where] = decision.allowed and ways.get(where, True)
        deciding = next((decision for decision in decisions if not decision.allowed), decisions[0])
        return replace(deciding, ways=tuple(ways.items()))

    def _arrive(self, question: Question, arrival: Arrival) -> Decision:
        """ALL points on the way must allow; the first denial decides, or the last point that accepted."""
        programs = [
            compile_layers([point]) if isinstance(point, Layer) else self.engine.program(point)
            for point in arrival.points
        ]
        layers = tuple(layer for program in programs for layer in program.layers)
        request = _without_others(arrival.request, question, layers)
        if _asks_schemes(layers):
            from eastgate.answers import with_answers  # few questions need it, and it brings much along

            request = with_answers(request, question, layers, self.world, self.settings, self.keys)
        arrival = replace(arrival, request=request)
        accepted = OPEN
        for program in programs:
            outcome = program.outcome(program.decide(arrival.request))
            if outcome.rule is not None or not outcome.allowed:
                accepted = outcome
            if not outcome.allowed:
                break
        return Decision(question, arrival, accepted, layers, tell=partial(self._conditions, arrival))

    def _conditions(self, arrival: Arrival) -> tuple[tuple[str, Condition], ...]:
        """What the policies on the way would show in their status."""
        attached = (
            one.policy for point in arrival.points if isinstance(point, str) for one in self.engine.attached(point)
        )
        beside = self.policies
        return tuple(
            (str(policy.ref), condition)
            for policy in attached
            for condition in dialects.conditions(policy, beside, self.settings, self.world)
        )


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
) -> Authority:
    """Read manifests and build an authority on them. Raises ManifestError with everything that is wrong.

    With `follow`, links in folders are followed that lead out of them; `exclude` are patterns of what is left out.
    """
    bounds = Bounds.of(paths, follow=follow, exclude=exclude)
    return Authority(read_manifests(paths, settings, bounds=bounds), settings, keys)
