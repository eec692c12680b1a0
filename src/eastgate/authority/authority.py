"""The authority: decides questions by the manifests that it holds, and follows every change of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from eastgate import dialects
from eastgate.authority.changes import Changes
from eastgate.authority.deciding import Decider, Prepared
from eastgate.authority.decisions import Decision
from eastgate.authority.enforcement import Enforcers, PolicyEnforcement
from eastgate.authority.examining import PolicyExamination
from eastgate.authority.faults import ref_of_id
from eastgate.authority.questions import Question, QuestionError
from eastgate.authority.reading import FaultReason, ManifestError, Manifests, read_plain, ref_of_document
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import brief, dataclass
from eastgate.cluster import LiveWorld, ObjectId, World, WorldObject
from eastgate.cluster.inventory import Change
from eastgate.cluster.points import Direction, Point
from eastgate.cluster.unread import Handling, UnreadObjects
from eastgate.cluster.unread.model import EnforcementPlane, TargetField, Unread, UnreadEffect, UnreadKind, UnreadTargets
from eastgate.dialects import Policy
from eastgate.dialects import rejected as rejection
from eastgate.engine.engine import Engine
from eastgate.engine.programs import Programs
from eastgate.ir import Attachment, Layer, Observe, PolicyRef, Predicate, Request, Stances
from eastgate.reading.manifests import Document
from eastgate.settings import Settings, SettingsError

if TYPE_CHECKING:
    from eastgate.reading.jwt import KeySource


# Descriptions of points list network policies as objects that they leave out, beside the unread objects.


def _network_objects(
    engine: Engine[Policy],
    document_of: Callable[[PolicyRef], Document | None],
) -> Iterator[Unread]:
    """Yield the policies that the network applies, each with the pods whose connections it decides about."""
    for policy in sorted(engine.network_policies, key=lambda policy: policy.ref):
        document = document_of(policy.ref)
        decides = {direction: any(map(_decides, engine.layers_of(policy, direction))) for direction in Direction}
        if document is not None and any(decides.values()):
            ref = policy.ref
            kind = UnreadKind(
                ref.group, ref.kind, UnreadEffect.DENY, EnforcementPlane.NETWORK, TargetField.POD_SELECTOR
            )
            into = policy.targets if decides[Direction.INGRESS] else ()
            out = policy.targets if decides[Direction.EGRESS] else ()
            yield Unread(kind, UnreadTargets(into, out), document)


def _decides(layer: Layer) -> bool:
    return any(not isinstance(stage, Observe) for chain in layer.chains for stage in chain.stages)


@dataclass(frozen=True, slots=True)
class Touched:
    """The points whose decisions an update may have changed, and the change that it made to the world."""

    points: frozenset[Point]
    change: Change

    def __or__(self, later: Touched) -> Touched:
        """Return the union of this update and a later one."""
        return Touched(self.points | later.points, self.change | later.change)


class Authority:
    """A world, its policies, and an engine that decides by them. A change is in force from the next question."""

    def __repr__(self) -> str:
        return brief(self, f"policies={len(self.policies)} workloads={len(self._world.workloads)}")

    def __init__(
        self,
        manifests: Manifests,
        settings: Settings | None = None,
        keys: KeySource | None = None,
        *,
        strict: bool = True,
        unread: Handling = Handling.ERROR,
        live: bool = False,
    ) -> None:
        """Check the manifests. Raises ManifestError if one has errors: no policy is ever ignored.

        Without `strict`, a policy with errors closes its targets: `decide` raises QuestionError for a question about a
        target, and answers other questions. `unread` tells how to treat answers that objects of unread kinds could
        change; by default they raise QuestionError.

        The settings must be those that the manifests were read with; other settings raise SettingsError. `keys` are the
        keys of token issuers. Without `keys`, no token is accepted, and the claims of a question count as a token. With
        `live`, authorizers may ask the servers that their policies name.
        """
        if errors := manifests.stopping(strict=strict):
            raise ManifestError(errors)
        if settings is not None and settings != manifests.settings:
            raise SettingsError(manifests.settings.difference_from(settings))
        self._settings = manifests.settings
        self._keys = keys
        self._asks_servers = live
        self._strict = strict
        self.custom = manifests.custom
        self.warnings = [diagnostic for diagnostic in manifests.reporter if not diagnostic.is_error]
        self.warnings += [finding for found in manifests.data_errors.values() for finding in found]
        self._documents = {policy.ref: manifests.document_of(policy) for policy in manifests.policies}
        self._documents |= {fault.policy.ref: fault.document for fault in manifests.closing}
        unfit = [fault.unfit for fault in manifests.faults if fault.unfit is not None]
        self._examination = PolicyExamination.of(self._settings, manifests.policies, unfit, manifests.data_errors)
        self._live = LiveWorld.of(manifests.objects)
        self._world = self._live.view
        settings, world = self._settings, self._world
        self._engine: Engine[Policy] = Engine(
            world,
            manifests.enforced_policies,
            self._assemble,
            lambda workload, attached: dialects.stances(workload, attached, settings, world),
            dialects.is_on_network,
            lambda attached, direction: dialects.assemble_end(attached, direction, settings, world),
            dialects.registered().surrounding_kinds,
            dialects.surroundings,
        )
        self._enforcers = Enforcers(self._engine, self._world, self._settings, self.document_of)
        self._decider = Decider(self._world, self._settings, self._engine, unread, self._enforcers)
        self._decider.unread_objects = manifests.unread
        self._unanalysed = (-1, UnreadObjects())

    @property
    def settings(self) -> Settings:
        """Return the settings that manifests were read with, and that decide."""
        return self._settings

    @property
    def keys(self) -> KeySource | None:
        """Return the keys of token issuers."""
        return self._keys

    @property
    def world(self) -> World:
        """Return the world, for reading. It always shows the current state; `update` changes it."""
        return self._world

    def points_changed(self, change: Change) -> frozenset[Point]:
        """Return the points that a change of the world touches. Only for the packages of this project."""
        return self._engine.world_changed(change)

    @property
    def policies(self) -> Sequence[Policy]:
        """Return every policy, in the order of their names."""
        return self._engine.policies

    def document_of(self, ref: PolicyRef) -> Document | None:
        """Return the document that a policy was read from, with errors or without. Not part of the public API."""
        return self._documents.get(ref)

    @property
    def rejected(self) -> Sequence[rejection.RejectedPolicy]:
        """Return the policies with errors. Each of them closes its targets."""
        return [policy for policy in self.policies if isinstance(policy, rejection.RejectedPolicy)]

    def _assemble(self, attached: Sequence[Attachment[Policy]], stances: Stances) -> list[Layer]:
        return dialects.assemble(attached, self._settings, self._world, stances, self._keys, live=self._asks_servers)

    # Changes

    def update(
        self,
        put: Manifests | Iterable[Mapping[str, object] | Policy | WorldObject] = (),
        remove: Iterable[PolicyRef | ObjectId | str] = (),
    ) -> None:
        """Put objects and policies in the place of those with the same names, and remove others, all at once.

        `put` takes plain data of the Kubernetes API, objects of `world`, `policies`, or `Manifests`. `remove` takes
        references or names, `Kind/namespace/name`; a name that does not exist is no error. Raises ManifestError if
        `put` has errors (see `strict`), alone or beside everything else; then nothing has changed. Warnings about `put`
        are added to `warnings`.
        """
        news = put if isinstance(put, Manifests) else self._read(put)
        self.apply(Changes(news, frozenset(ref for name in remove for ref in self._refs(name))))

    def apply(self, changes: Changes) -> Touched:
        """Make changes, all at once, and return the points that they touched. All changes of policies and objects come
        here.

        Raises ManifestError as `update` does.
        """
        news = changes.put
        if news.settings != self._settings:
            raise SettingsError(self._settings.difference_from(news.settings))
        if errors := news.stopping(strict=self._strict):
            raise ManifestError(errors)
        gone = changes.removed - {policy.ref for policy in news.policies}
        gone |= {ref_of_id(declared.id) for declared in news.objects}  # it may have had errors, and closed its targets
        gone |= {ref_of_document(fault.document) for fault in news.faults if fault.reason is FaultReason.ROUTE}
        ids = {ObjectId(ref.group, ref.kind, ref.namespace or "", ref.name) for ref in gone}
        self._engine.touched.clear()
        before = [self._world.objects.get(name) for name in {*ids, *(declared.id for declared in news.objects)}]
        change = self._live.update(put=news.objects, remove=ids)
        try:
            examined = self._examine(news, gone, change)
        except ManifestError:
            self._live.update(filter(None, before), [declared.id for declared in news.objects])
            raise
        for ref in gone:
            self._engine.remove_policy(ref)
            self._documents.pop(ref, None)
        for policy in (*news.enforced_policies, *examined):
            self._engine.put_policy(policy)
        self._documents |= {policy.ref: news.document_of(policy) for policy in news.policies}
        self._documents |= {fault.policy.ref: fault.document for fault in news.closing}
        self.unread_objects = self._unread_after(news, gone)
        if changes.warnings is None:
            replaced = {str(ref) for ref in (*gone, *(policy.ref for policy in news.enforced_policies))}
            self.warnings = [warning for warning in self.warnings if not _is_about(warning, replaced)]
            self.warnings += [diagnostic for diagnostic in news.reporter if not diagnostic.is_error]
        else:
            self.warnings = [*changes.warnings]
        return Touched(frozenset(self._engine.touched), change)

    def _read(self, put: Iterable[Mapping[str, object] | Policy | WorldObject]) -> Manifests:
        given = list(put)
        news = read_plain([item for item in given if isinstance(item, Mapping)], self._settings)
        for item in given:
            if isinstance(getattr(item, "ref", None), PolicyRef):
                news.policies.append(cast("Policy", item))
            elif not isinstance(item, Mapping):
                news.objects.append(cast("WorldObject", item))
        return news

    def _refs(self, name: PolicyRef | ObjectId | str) -> list[PolicyRef]:
        """Return the references to the policies and objects with this name."""
        if not isinstance(name, str):
            return [name if isinstance(name, PolicyRef) else ref_of_id(name)]
        refs = [policy.ref for policy in self.policies]
        refs += map(ref_of_id, self._world.objects)
        refs += [ref_of_document(unread.document) for unread in self.unread_objects.objects]
        return [ref for ref in refs if str(ref) == name]

    def _examine(self, news: Manifests, gone: Set[PolicyRef], change: Change) -> list[Policy]:
        """Examine policies beside everything else. Return the policies that close their targets because of errors, and
        those whose errors have gone.

        Raises ManifestError for errors if the authority is strict, or if an error belongs to no known document.
        """
        replaced = gone | {policy.ref for policy in news.enforced_policies}
        kinds = {changed.kind for changed in change.objects}
        examination, findings = self._examination.after(news.policies, replaced, kinds, self._world)
        errors = findings.errors
        documents = {ref: self._documents.get(ref) for ref in errors if ref is not None}
        documents |= {policy.ref: news.document_of(policy) for policy in news.policies if policy.ref in documents}
        closing: list[Policy] = [
            dialects.reject(document, errors[ref], self._settings)
            for ref, document in documents.items()
            if document is not None
        ]
        if errors and (self._strict or len(closing) < len(errors)):
            raise ManifestError([error for own in errors.values() for error in own])
        before = [finding for found in self._examination.data_errors.values() for finding in found]
        self.warnings = [warning for warning in self.warnings if warning not in before]
        self.warnings += [finding for found in examination.data_errors.values() for finding in found]
        self._examination = examination
        return [*closing, *findings.mended]

    def _unread_after(self, news: Manifests, gone: Set[PolicyRef]) -> UnreadObjects:
        replaced = {ref_of_document(unread.document) for unread in news.unread.objects} | gone
        kept = [unread for unread in self.unread_objects.objects if ref_of_document(unread.document) not in replaced]
        return UnreadObjects([*kept, *news.unread.objects])

    @contextmanager
    def imagining(self, objects: Iterable[WorldObject]) -> Iterator[None]:
        """Add objects that no manifest declares, until the context ends. Not part of the public API."""
        imagined = tuple(objects)
        self._live.update(put=imagined)
        try:
            yield
        finally:
            self._live.update(remove=[declared.id for declared in imagined])

    def assign_addresses(self, addresses: Mapping[str, str], *, prove: bool = False) -> Change:
        """Place these workloads at these addresses, all on one machine: see `LiveWorld.assign_addresses`."""
        return self._live.assign_addresses(addresses, prove=prove)

    # Questions

    def decide(self, question: Question) -> Decision:
        """Answer a question. Raises QuestionError if it cannot be decided.

        The reasons are a policy with errors that could change the answer, or an unread object, as `unread` tells.
        """
        return self._decider.decide(question)

    def decide_all(self, questions: Iterable[Question | Prepared]) -> list[Decision | QuestionError]:
        """Answer many questions, in order. A QuestionError takes the place of an answer that cannot be given."""
        answers: list[Decision | QuestionError] = []
        for question in questions:
            try:
                answers.append(self.decide(question) if isinstance(question, Question) else question.decide())
            except QuestionError as error:
                answers.append(error)
        return answers

    def notices(self, workloads: Collection[str] | None = None) -> list[Diagnostic]:
        """Return warnings about policies that no proxy enforces, on the workloads of these keys or on all.

        Every command that shows answers about these workloads prints them.
        """
        return dialects.notices(self.policies, self._settings, self._world, workloads)

    def prepare(self, question: Question) -> Prepared:
        """Resolve a question that is to be decided often. Raises QuestionError if its ends do not exist."""
        return Prepared(self._decider, question)

    def enforced(self, question: Question, along: tuple[Point, ...] | None = None) -> Decision:
        """Return the enforced decision: proxies close the targets of a policy with errors.

        `along`: only the ways that pass these points count, if there are any.
        """
        return self._decider.enforced(question, along)

    def requests(self, question: Question) -> list[Request]:
        """Return the requests that a question means, as the engine decides them."""
        return [arrival.request for arrival, _ in self._decider.arrivals(question)]

    def ways(self, question: Question) -> Iterator[tuple[str, Predicate, bool]]:
        """Yield the ways that a question without HTTP may take: where, for which requests, and whether all are allowed.

        It yields nothing if the condition of the requests that arrive is unknown.
        """
        return self._decider.ways(question)

    @property
    def unread(self) -> Handling:
        """Return how to treat answers that objects of unread kinds could change."""
        return self._decider.unread

    @property
    def unread_objects(self) -> UnreadObjects:
        """Return the objects of kinds that are not read."""
        return self._decider.unread_objects

    @unread_objects.setter
    def unread_objects(self, objects: UnreadObjects) -> None:
        self._decider.unread_objects = objects

    @property
    def unanalysed(self) -> UnreadObjects:
        """Return the objects that descriptions of points leave out: unread objects, and policies of the network.

        Only for the packages of this project, and not part of the public API.
        """
        version, objects = self._unanalysed
        if version != self._engine.version:
            unread = self.unread_objects.objects
            network = _network_objects(self._engine, self.document_of)
            objects = UnreadObjects([*unread, *network])
            self._unanalysed = (self._engine.version, objects)
        return objects

    def enforcement_at(self, point: Point) -> list[PolicyEnforcement]:
        """Return the enforcer of the policies at a point. Not part of the public API."""
        return list(self._enforcers.at(point))

    def rejected_at(self, points: Iterable[Point]) -> list[rejection.RejectedPolicy]:
        """Return the policies with errors that are about some of these points."""
        return self._decider.rejected_at(points)


# For the packages of this project


def programs_of(authority: Authority) -> Programs[Policy]:
    """Return the programs that decide at each point, for reading."""
    return authority._engine


def decider_of(authority: Authority) -> Decider:
    """Return the decider, which answers questions."""
    return authority._decider


def _is_about(warning: Diagnostic, names: Set[str]) -> bool:
    """Return whether a warning is about an object of a cluster that has one of these names."""
    return warning.span is not None and warning.span.source.is_object and warning.span.file in names
