"""Manifests: files, sorted into objects, policies, and errors in either."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from os import PathLike
from typing import BinaryIO, Protocol, cast, runtime_checkable

from eastgate import dialects
from eastgate.authority.duplicates import deciding, difference
from eastgate.authority.examining import PolicyExamination
from eastgate.authority.faults import FAULTY, has_no_namespace, is_left_out, lost_text
from eastgate.authority.faults import Fault as Fault
from eastgate.authority.faults import FaultReason as FaultReason
from eastgate.authority.faults import ref_of_document as ref_of_document
from eastgate.authority.undeployed import diagnose_undeployed, undeployed_policies
from eastgate.authority.unfilled import Unfilled, diagnose_open_hosts, take_placeholders
from eastgate.basics.diagnostics import Diagnostic, Reporter, render_all
from eastgate.basics.records import brief, dataclass
from eastgate.cluster import Manifest, World, WorldObject, interpret, may_install
from eastgate.cluster.unread import Unread, UnreadObjects, diagnose_left_out, lost_part, unlisted_objects, unread_object
from eastgate.dialects import Policy
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Bounds, Document, ReadResult, read, read_text
from eastgate.reading.manifests.custom import CustomResources
from eastgate.reading.manifests.document import origin_of
from eastgate.reading.manifests.rendered import UnlistedKind
from eastgate.reading.repository import LeftOut
from eastgate.settings import Settings


class ManifestError(ValueError):
    """Manifests with errors. `diagnostics` has all of them, of all documents."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(render_all(diagnostics))
        self.diagnostics = list(diagnostics)


@runtime_checkable
class DocumentSource(Protocol):
    """A readable source among paths that is no file: a cluster."""

    def __fspath__(self) -> str: ...

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of a command that reads the same source."""
        ...

    def read(self, settings: Settings, into: ReadResult, on_part: Callable[[int, int], None] | None) -> None:
        """Add its documents, and report a failure. `on_part` gets the parts read, and the number of all parts."""
        ...


@dataclass(slots=True)
class Manifests:
    """The documents that were read with some settings: objects, policies, and errors in either."""

    settings: Settings = field(default_factory=Settings)
    objects: list[WorldObject] = field(default_factory=list)
    policies: list[Policy] = field(default_factory=list)
    reporter: Reporter = field(default_factory=Reporter)
    faults: list[Fault] = field(default_factory=list)
    unread: UnreadObjects = field(default_factory=UnreadObjects)
    unused: int = 0
    excluded: int = 0
    skipped: int = 0
    """Number of documents that are no manifests, and were skipped."""
    left_out: dict[PolicyRef, list[Diagnostic]] = field(default_factory=dict)
    """The errors in objects of a cluster that are no policies: one of them must not stop answers about others."""
    data_errors: Mapping[str, list[Diagnostic]] = field(default_factory=dict)
    """The errors, by dialect, in cluster data about all policies: see `PolicyExamination`."""
    unbuilt: list[LeftOut] = field(default_factory=list)
    """The parts that were not read. Each is among the `unread` objects, too."""
    refused: list[Diagnostic] = field(default_factory=list)
    """The errors in the user's request, such as a pattern without a match: `ReadResult.refused`."""
    head_only: list[tuple[Document, Diagnostic]] = field(default_factory=list)
    """The objects whose head alone could be read."""
    twice: list[tuple[Document, Diagnostic]] = field(default_factory=list)
    """Policies that contradict a document of the same name."""
    left_out_errors: set[int] = field(default_factory=set)
    """The errors, by identity, of parts that are left out: see `leaving_out`."""
    custom: CustomResources = field(default_factory=CustomResources)
    _documents: dict[Policy, Document] = field(default_factory=dict)
    _unfilled: Unfilled = field(default_factory=Unfilled, repr=False)

    def __repr__(self) -> str:
        errors = len(self.reporter.errors)
        return brief(self, f"objects={len(self.objects)} policies={len(self.policies)} errors={errors}")

    def add(self, document: Document) -> None:
        """Add one document."""
        reporter = Reporter()
        if isinstance(origin := origin_of(document), UnlistedKind):
            self.unread.objects.append(unlisted_objects(document, origin))
        elif (kind := dialects.unread(document)) is not None:
            found = self._unfilled.in_unread(document)
            if not found:
                self.unread.objects.append(unread_object(kind, document))
            else:
                self._add_unfilled(Fault(document, FaultReason.OBJECT, [], self.settings), found, reporter)
        elif dialects.is_policy(document):
            policy = dialects.read_policy(document, self.settings, reporter)
            found = [*take_placeholders(reporter), *(self._unfilled.in_policy(document) if policy is not None else ())]
            if found:
                self._add_unfilled(Fault(document, FaultReason.POLICY, reporter.errors, self.settings), found, reporter)
            elif policy is None:
                self.faults.append(Fault(document, FaultReason.POLICY, reporter.errors, self.settings))
            else:
                self.add_policy(policy, document)
        else:
            self._add_object(document, reporter)
        self.reporter.diagnostics.extend(self._unreported(reporter))

    def _add_object(self, document: Document, reporter: Reporter) -> None:
        reason = FaultReason.ROUTE if dialects.is_route(document) else FaultReason.OBJECT
        declared = _declared(document, self.settings, reporter)
        if reporter.errors and is_left_out(document):
            self._leave_out(document, reporter)
            return
        found = take_placeholders(reporter)
        if not found and declared is not None:
            found = self._unfilled.in_object(document, declared)
        if found:
            self._add_unfilled(Fault(document, reason, reporter.errors, self.settings), found, reporter)
            return
        if declared is not None:
            self.objects.append(declared)
            self._add_open_hosts(document, declared)
        elif not reporter.errors:
            self.unused += 1
        if reporter.errors:
            self.faults.append(Fault(document, reason, reporter.errors, self.settings))

    def _add_open_hosts(self, document: Document, declared: WorldObject) -> None:
        if (unread := self._unfilled.open_hosts(document, declared)) is not None:
            self.unread.objects.append(unread)
            self.reporter.diagnostics.append(diagnose_open_hosts(unread))

    def _add_unfilled(self, fault: Fault, found: list[Diagnostic], reporter: Reporter) -> None:
        """Add a document with placeholders. If nothing else is wrong it is left out; a policy closes its targets."""
        fault.errors = [*reporter.errors, *found]
        reporter.diagnostics += found
        if len(fault.errors) == len(found):
            fault.is_unfilled = True
            self._lose(fault.left_out())
            if fault.reason is not FaultReason.POLICY or has_no_namespace(fault.document):
                fault.reason = FaultReason.LEFT_OUT
        self.faults.append(fault)

    def _lose(self, lost: Unread) -> None:
        self.unbuilt += [lost.part] if lost.part is not None else []
        self.unread.objects.append(lost)

    def add_template(self, document: Document | None, finding: Diagnostic) -> None:
        """Add a text with placeholders, which must be rendered first. At most its head was read."""
        if document is None:
            self._lose(lost_text(finding))
        else:
            self._add_unfilled(Fault.of_head(document, self.settings), [finding], Reporter())

    def add_policy(self, policy: Policy, document: Document | None) -> None:
        """Add a policy, and the document that it was read from."""
        self.policies.append(policy)
        if document is not None:
            self._documents[policy] = document

    def _leave_out(self, document: Document, reporter: Reporter) -> None:
        """Leave an object with errors out, as an unread object."""
        self.unread.objects.append(unread_object(FAULTY, document))
        self.left_out[ref_of_document(document)] = reporter.errors
        reporter.diagnostics[:] = [finding for finding in reporter if not finding.is_error]

    def settle(self, *, whole: bool = True) -> None:
        """Report findings that need all manifests, if everything has been read."""
        if whole and any((fault.document.group, fault.document.kind) == ("", "Secret") for fault in self.faults):
            from eastgate.authority.secrets import settle_secrets  # most Secrets have no errors

            settle_secrets(self)
        if whole and any(dialects.is_examined(policy) for policy in self.policies):
            world = World.of(self.objects)
            examination, findings = PolicyExamination(self.settings).after(self.policies, (), (), world)
            self.data_errors = examination.data_errors
            for policy, finding in findings.found:
                self.reporter.diagnostics.append(finding)
                if policy is not None and finding.is_error:
                    self.reject(policy, finding)
        self._attribute()

    def document_of(self, policy: Policy) -> Document | None:
        """Return the document that a policy was read from."""
        return self._documents.get(policy)

    @property
    def closing(self) -> list[Fault]:
        """Return the faults that close their targets, or the objects that they may affect."""
        return [fault for fault in self.faults if fault.closes]

    @property
    def unattributed_errors(self) -> list[Diagnostic]:
        """Return the errors that belong to no fault: they leave unknown which objects and policies exist."""
        faults = (fault for fault in self.faults if fault.reason != FaultReason.OBJECT)
        attributed = {id(error) for fault in faults for error in fault.errors}
        attributed |= self.left_out_errors
        return [error for error in self.reporter.errors if id(error) not in attributed]

    def stopping(self, *, strict: bool) -> list[Diagnostic]:
        """Return all errors, if they stop every answer: with `strict` any does, otherwise one of no known object."""
        open_hosts = [unread.part for unread in self.unread.objects if unread.part is not None and unread.hosts]
        lost = [part for part in (*self.unbuilt, *open_hosts) if part.can_decide] if strict else []
        if (strict and not (lost or self.reporter.errors)) or (not strict and not self.unattributed_errors):
            return []
        return [*self.reporter.errors, *diagnose_left_out(lost)]

    @property
    def unknown_objects(self) -> list[Fault]:
        """Return routes with errors, and objects that are written twice: their actual content is unknown."""
        return [fault for fault in self.closing if not dialects.is_policy(fault.document)]

    @property
    def enforced_policies(self) -> list[Policy]:
        """Return the policies. In place of a policy with errors is one that closes its targets."""
        return [*self.policies, *(fault.policy for fault in self.closing)]

    def keep(self, good: Mapping[PolicyRef, Policy]) -> None:
        """Replace policies with errors by the policies of the same names that were read before."""
        for fault in self.closing:
            policy = good.get(fault.policy.ref)
            if policy is not None:
                fault.reason = FaultReason.KEPT
                self.add_policy(policy, fault.document)

    def _attribute(self) -> None:
        """Reject the policies with errors that their reader reported, but read all the same."""
        unattributed = self.unattributed_errors
        if not unattributed:
            return
        by_file: dict[str, list[Policy]] = {}
        for policy in self._documents:
            by_file.setdefault((policy.span.built or policy.span).file, []).append(policy)
        for error in unattributed:
            span = error.span
            if span is None:
                continue
            fault = next((fault for fault in self.closing if fault.document.span.holds(span)), None)
            near = by_file.get((span.built or span).file, ())
            owner = next((policy for policy in near if policy.span.holds(span)), None)
            if fault is not None:
                fault.errors.append(error)
            elif owner is not None:
                self.reject(owner, error)

    def reject(self, policy: Policy, error: Diagnostic) -> None:
        """Make a policy close its targets, because of an error."""
        document = self._documents[policy]
        fault = next((fault for fault in self.closing if fault.document is document), None)
        if fault is not None:
            fault.errors.append(error)
            return
        self.policies = [other for other in self.policies if other is not policy]
        self.faults.append(Fault(document, FaultReason.POLICY, [error], self.settings, policy))

    def _unreported(self, reporter: Reporter) -> list[Diagnostic]:
        """Return the findings at places without a finding: the first to see a mistake reports it."""
        if not reporter.diagnostics:
            return []
        reported = {(d.span.file, d.span.line, d.span.column) for d in self.reporter if d.span is not None}
        return [d for d in reporter if d.span is None or (d.span.file, d.span.line, d.span.column) not in reported]


def _declared(document: Document, settings: Settings, reporter: Reporter) -> WorldObject | None:
    if document.data is None:
        return dialects.read_object(document, settings, reporter)
    manifest = cast("Manifest", document)
    declared = interpret(manifest, reporter, document.default_namespace)
    if declared is not None:
        dialects.inspect(manifest, declared, reporter)
    return declared


def read_manifests(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    settings: Settings | None = None,
    *,
    stdin: BinaryIO | None = None,
    on_file: Callable[[int, int], None] | None = None,
    bounds: Bounds | None = None,
) -> Manifests:
    """Read files, folders and `-` (standard input). Errors in them go to `reporter`, and never raise.

    Raises TypeError if one of the `paths` is no path, such as an open file.
    """
    chosen = settings or Settings()
    given = [paths] if isinstance(paths, str | PathLike) else paths
    if hasattr(given, "readline"):  # an open file is iterable, but its lines are no paths
        raise TypeError(f"paths: expected files and folders, got {type(given).__name__}")
    given = list(given)
    for path in given:
        if not isinstance(path, str | PathLike):
            raise TypeError(f"paths: expected files and folders, got {type(path).__name__}")
    reading = read_documents(given, chosen, stdin=stdin, on_file=on_file, bounds=bounds, skim=True)
    return sort_reading(reading, chosen)


def read_documents(
    paths: Iterable[str | PathLike[str]],
    settings: Settings,
    *,
    stdin: BinaryIO | None = None,
    on_file: Callable[[int, int], None] | None = None,
    bounds: Bounds | None = None,
    skim: bool = False,
) -> ReadResult:
    """Read documents as they are written. With `skim`, only count documents of unused kinds."""
    given = list(paths)
    reading = read(
        [path for path in given if not isinstance(path, DocumentSource)],
        positioned=dialects.reads,
        matters=dialects.matters,
        takes=dialects.takes,
        differ=difference,
        deploys=dialects.deploys,
        skim=skim,
        namespace=settings.namespace,
        stdin=stdin,
        on_file=on_file,
        bounds=bounds,
    )
    for source in given:
        if isinstance(source, DocumentSource):
            source.read(settings, reading, on_file)
    return reading


def read_plain(objects: Iterable[Mapping[str, object]], settings: Settings, *, whole: bool = False) -> Manifests:
    """Read objects of the Kubernetes API that are given as plain data, as the client libraries have them.

    `whole`: these are all objects, and policies are examined beside everything else.
    """
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}, indent=1)
    return read_whole_text("update.json", content, settings, whole=whole)


def read_whole_text(name: str, text: str, settings: Settings, *, whole: bool = True) -> Manifests:
    """Read manifests in YAML or JSON. Diagnostics name the text `name`."""
    reading = read_text(name, text, positioned=dialects.reads, namespace=settings.namespace)
    return sort_reading(reading, settings, whole=whole)


def sort_reading(reading: ReadResult, settings: Settings, *, whole: bool = True) -> Manifests:
    """Sort a reading into objects and policies, with all parts that it left out."""
    manifests = sort_documents(reading.documents, settings, reading.reporter, reading.twice, whole=whole)
    manifests.unused += reading.unused
    manifests.excluded, manifests.skipped = reading.excluded, sum(reading.skipped.values())
    manifests.refused, manifests.head_only, manifests.custom = reading.refused, reading.head_only, reading.custom
    manifests.unbuilt += reading.unbuilt
    manifests.unread.objects += map(lost_part, reading.unbuilt)
    manifests.unread.objects += undeployed_policies(reading.undeployed, settings)
    manifests.reporter.diagnostics += diagnose_undeployed(reading.undeployed)
    for document, finding in reading.templates:
        manifests.add_template(document, finding)
    return manifests


def sort_documents(
    documents: Iterable[Document],
    settings: Settings,
    reporter: Reporter,
    twice: Iterable[tuple[Document, Diagnostic]] = (),
    *,
    whole: bool = True,
) -> Manifests:
    """Sort documents into objects and policies.

    `twice` are objects that contradict a document of the same name. Unless these documents are the `whole`, policies
    are not examined beside everything else.
    """
    manifests = Manifests(settings, reporter=reporter)
    for document in documents:
        try:
            manifests.add(document)
        except Exception as failure:
            failure.add_note(f"while reading {document.span.location}: {document.kind} {document.name}")
            raise
    for document, error in deciding(twice, manifests.objects, manifests.policies, reporter):
        if not (dialects.is_policy(document) or may_install(document.api_version, document.kind)):
            manifests.faults.append(Fault(document, FaultReason.TWICE, [error], settings))
        else:
            manifests.twice.append((document, error))
    manifests.settle(whole=whole)
    return manifests
