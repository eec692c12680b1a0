"""The interface of a dialect: its kinds, the assembly of policies to layers, and their descriptions.

Every dialect is a package with the same files:

- `codes`: the codes of its errors
- `shapes`: its resources, field by field
- `validation` and `values`: checks beyond types
- `model`: its typed resources
- `meaning`: from a document to the model and the IR
- `assemble`: from the models on a workload to layers
- `provenance`: the origin of a layer, as data
- `words`: descriptions and status of policies
- `lint` and `lint_codes`: its findings

`__init__` imports `meaning` when a policy of the dialect is read, and `lint` when lint runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum, auto
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Backend, Manifest, Target, Workload, World, WorldObject
from eastgate.cluster.gateways import ParentRef
from eastgate.cluster.points import DeadEnd, Direction
from eastgate.dialects.auditing import enforced, with_audit
from eastgate.dialects.converting import Converter
from eastgate.dialects.logs import LoggedDecision
from eastgate.dialects.serving import Served, Status
from eastgate.dialects.words import Words
from eastgate.ir import Attachment, Layer, Origin, Placement, PolicyRef, Unroutable
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Check, Record, check
from eastgate.settings import Section, Settings

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting
    from eastgate.reading.jwt import KeySource


class Policy(Protocol):
    """A policy of any dialect, with the properties to attach, list and name it. It is a frozen dataclass.

    `targets` are the points that it is attached to. `references` are the policies that it refers to. `origins` are
    those of its rules. A policy in `audit` mode is observed and decides nothing.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def ref(self) -> PolicyRef: ...
    @property
    def span(self) -> Span: ...
    @property
    def targets(self) -> tuple[Target, ...]: ...
    @property
    def references(self) -> tuple[PolicyRef, ...]: ...
    @property
    def origins(self) -> Iterable[Origin]: ...
    @property
    def audit(self) -> bool: ...


P = TypeVar("P", bound=Policy)
T = TypeVar("T")

Notices = Callable[[Sequence[P], Settings, World, Collection[str] | None], Iterable[Diagnostic]]
Read = Callable[[Document, Node, Settings, Reporter], T | None]
Widen = Callable[[tuple[Target, ...], Document, Settings], tuple[Target, ...]]


class NameUse(Enum):
    """The use of a kind's name by other APIs.

    It decides whether a kind with this name and a misspelt group must belong to this dialect.
    """

    OURS_ALONE = auto()
    OTHER_GROUPS = auto()  # every other group has a dot
    COMMON = auto()


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind in one version. `read` returns the result of a document, or reports what is wrong and returns None.

    - `shapes` are the forms that a file may have.
    - `short` is the short name for `get`.
    - `served` is for kinds that only Eastgate defines.
    - A kind may be `cluster_scoped`, apply only to policies that refer to it (`by_reference`), or be a route whose
      parents are of the kind `parent`.
    - `locate` returns the targets of a document that has errors elsewhere, if its kind has no `targetRefs`. Without it,
      or if it returns None, the targets are read from `targetRefs`.
    - `shared_status` is the form of the status of a kind that another project defines, and that several controllers
      write. With a `status_lease`, Eastgate writes only while no controller of that API holds this Lease.
    - Other policies refer to policies of a `selected` kind by labels.
    - `is_about_callers` returns whether an object of an API server restricts the connections that pods may open.
    """

    group: str
    version: str
    kind: str
    read: Read[T]
    shapes: Callable[[], tuple[Record[Any], ...]]
    name_use: NameUse = NameUse.OURS_ALONE
    short: str | None = None
    served: Served | None = None
    cluster_scoped: bool = False
    by_reference: bool = False
    parent: str | None = None
    locate: Callable[[Document], tuple[Target, ...] | None] | None = None
    shared_status: Status | None = None
    status_lease: str | None = None
    selected: bool = False
    is_about_callers: Callable[[Mapping[str, Any]], bool] | None = None

    @property
    def status(self) -> Status | None:
        """Return the form of the status that the controller of Eastgate may write, or None if it may not write it."""
        return self.served.resource.status if self.served is not None else self.shared_status

    @property
    def key(self) -> tuple[str, str, str]:
        return self.group, self.version, self.kind


@dataclass(frozen=True, slots=True)
class Scene:
    """The inputs of assembly other than policies.

    `stance` is the result of the dialect's own `stance` for the workload. `keys` are those of token issuers. `live`:
    the layers decide real requests, so that authorizers may call servers and reuse answers.
    """

    settings: Settings
    world: World
    stance: Hashable = None
    keys: KeySource | None = None
    live: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The objects of other APIs that layers at any point may depend on.

    - `kinds` are their kinds. A change of one changes the layers of all points, and so does another result of `of`.
    - `config_namespaces` are the namespaces whose ConfigMaps configure the API.
    - `root_namespace` returns the namespace whose policies apply to all namespaces.
    - `pod_annotations` are the annotations of pods that verdicts depend on.
    """

    kinds: frozenset[str] = frozenset()
    of: Callable[[World], Hashable] | None = None
    config_namespaces: frozenset[str] = frozenset()
    root_namespace: Callable[[Settings], str] | None = None
    pod_annotations: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HostKind:
    """A kind of policies that an authorizer for other proxies finds by the host of a request. `at` is its placement."""

    group: str
    kind: str
    authorizer: str
    at: Placement

    @property
    def dead_end(self) -> DeadEnd:
        """Return the point of a host without policies."""
        return DeadEnd(Unroutable.NO_HOST_POLICY, self.at)

    def ref(self, namespace: str, name: str) -> PolicyRef:
        """Return the reference to a policy of this kind."""
        return PolicyRef(self.kind, namespace, name, self.group)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a resource, as Kubernetes writes it."""

    type: str
    status: str
    reason: str
    message: str

    def to_json(self) -> Mapping[str, str]:
        """Return the condition as plain data."""
        return {"type": self.type, "status": self.status, "reason": self.reason, "message": self.message}


@dataclass(frozen=True, slots=True, eq=False)
class Dialect(Generic[P]):
    """A policy API, with everything that Eastgate knows about it.

    - `kinds` are its policies, and `objects` the other objects that it declares. `bystanders` are the kinds of its
      groups that are known and not read.
    - `layers` assembles the policies of this dialect at one enforcement point. If layers depend on the workload itself,
    for example on its annotations, `stance` returns all relevant properties, or None. Workloads with the same policies
    and the same stance decide alike. `closes` returns whether a policy denies by its presence, without a rule for it.
    - `enforce` returns an audited policy as if it were in force, and any other policy unchanged. `enforce_stance` does
      the same for the stance of a workload.
    - `ends`, instead of `layers`, is for policies that the network enforces at the two ends of a connection.
    - `words` describe its policies. `codes` returns the modules with its codes of diagnostics. `lint` returns its hooks
    for lint; only lint imports it. `settings` are those that only this dialect reads. `conversions` are the forms that
    its policies can be converted to, by their names in `convert --to`; conversions between two dialects are in
    `eastgate.convert`.
    - `examine` yields diagnostics that need all objects that were read. An error about a policy rejects it. They depend
      on policies of this dialect, and on objects of `examined_kinds`. `inspect` reports errors in an object of another
      API that refers to this one. `status` returns the conditions that a policy would show, and `summary` the summary
      beside them, if the API has one. `refusal` is the type and reason of the condition for a policy with errors.
      `parents` returns the parents of a route, each with the route as if it had no other.
    - `notices` yields warnings about policies that are not in force, on the workloads with the given keys or on all.
    - `widen` returns the possible targets of a policy with errors, if they are more than its namespace or its targets.
    - `port_names` are the names in a policy of ports of the workloads that it applies to, or that these call.
    - `surroundings` are the objects of other APIs that its layers depend on. `reads_secrets`: its policies compare
      credentials with Secrets. `deciding_annotations` are the annotations that change whether and how a policy decides.
      `hosts` is the kind whose policies are found by the host of a request.
    - `read_log` returns the decision in a log line of this API's own proxies, or None for other lines. It raises
      LogLineError if the line contains no decision.
    """

    name: str
    model: type[P]
    kinds: tuple[Kind[P], ...]
    layers: Callable[[Sequence[Attachment[P]], Scene], list[Layer]]
    words: Words[P]
    lint: Callable[[], Linting[P]]
    codes: Callable[[], tuple[ModuleType, ...]]
    closes: Callable[[P], bool]
    objects: tuple[Kind[Backend], ...] = ()
    ends: Callable[[Sequence[Attachment[P]], Direction, Scene], list[Layer]] | None = None
    stance: Callable[[Workload, Sequence[Attachment[P]], Scene], Hashable] | None = None
    settings: type[Section] | None = None
    conversions: Mapping[str, Converter[P]] = field(default_factory=dict)
    examine: Callable[[Collection[P], Settings, World], Iterable[tuple[P | None, Diagnostic]]] | None = None
    examined_kinds: frozenset[str] = frozenset()
    inspect: Callable[[Manifest, WorldObject, Reporter], None] | None = None
    status: Callable[[P, Sequence[P], Settings, World], Sequence[Condition]] | None = None
    summary: Callable[[P, Sequence[P], Settings, World], Mapping[str, object]] | None = None
    refusal: tuple[str, str] = ("Accepted", "Invalid")
    parents: Callable[[P], Sequence[tuple[ParentRef, P]]] | None = None
    bystanders: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    read_log: Callable[[str], LoggedDecision | None] | None = None
    widen: Widen | None = None
    notices: Notices[P] | None = None
    port_names: Callable[[P], Iterable[str]] | None = None
    surroundings: Surroundings = Surroundings()
    deciding_annotations: frozenset[str] = frozenset()
    hosts: HostKind | None = None
    reads_secrets: bool = False
    enforce: Callable[[P], P] = enforced
    enforce_stance: Callable[[Hashable], Hashable] = lambda stance: stance

    def warnings(
        self, policies: Sequence[object], settings: Settings, world: World, workloads: Collection[str] | None
    ) -> Iterable[Diagnostic]:
        """Yield the warnings of `notices` about the policies of this dialect."""
        return (
            self.notices(self._own_policies(policies), settings, world, workloads) if self.notices is not None else ()
        )

    def conditions(
        self, policy: object, policies: Sequence[object], settings: Settings, world: World
    ) -> Sequence[Condition]:
        """Return the conditions that a policy would show; none for a policy of another dialect."""
        if self.status is None or not isinstance(policy, self.model):
            return ()
        return self.status(policy, self._own_policies(policies), settings, world)

    def named_ports(self, policy: object) -> Iterable[str]:
        """Return the names of ports in a policy; none for a policy of another dialect."""
        return self.port_names(policy) if self.port_names is not None and isinstance(policy, self.model) else ()

    def summarize(
        self, policy: object, policies: Sequence[object], settings: Settings, world: World
    ) -> Mapping[str, object]:
        """Return the summary in the status of a policy, or an empty one."""
        if self.summary is None or not isinstance(policy, self.model):
            return {}
        return self.summary(policy, self._own_policies(policies), settings, world)

    def split_parents(self, policy: object) -> Sequence[tuple[ParentRef, P]]:
        """Return the parents of a route, each with the route as if it had no other; none for other policies."""
        return self.parents(policy) if self.parents is not None and isinstance(policy, self.model) else ()

    def _own_policies(self, policies: Sequence[object]) -> list[P]:
        return [policy for policy in policies if isinstance(policy, self.model)]

    def stance_of(self, workload: Workload, attached: Sequence[Attachment[object]], scene: Scene) -> Hashable:
        """Return the inputs of a workload's layers other than its policies, or None if there are none."""
        return self.stance(workload, self._own_attachments(attached), scene) if self.stance is not None else None

    def assemble_end(self, attached: Sequence[Attachment[object]], direction: Direction, scene: Scene) -> list[Layer]:
        """Return the layers of this dialect at one end of connections; none without policies there."""
        ours, ends = self._own_attachments(attached), self.ends
        if not ours or ends is None:
            return []
        return with_audit(ours, None, lambda put, _: ends(put, direction, scene), self.enforce, self.enforce_stance)

    def assemble(self, attached: Sequence[Attachment[object]], scene: Scene) -> list[Layer]:
        """Return the layers of this dialect at a point; none without policies and a stance there."""
        ours, stance = self._own_attachments(attached), scene.stance
        if not ours and stance is None:
            return []

        def assemble(put: Sequence[Attachment[P]], under: Hashable) -> list[Layer]:
            return self.layers(put, scene if under is stance else dataclasses.replace(scene, stance=under))

        return with_audit(ours, stance, assemble, self.enforce, self.enforce_stance)

    def _own_attachments(self, attached: Sequence[Attachment[object]]) -> list[Attachment[P]]:
        return [
            Attachment(policy, attachment.service, attachment.host, attachment.perhaps)
            for attachment in attached
            if isinstance(policy := attachment.policy, self.model)
        ]


def reader(
    shape: Record[Settings] | Callable[[Node], Record[Settings]], meaning: Callable[[Document, Node, Settings], T]
) -> Read[T]:
    """Return a function that checks a document against its shape and, if it has no errors, returns its meaning."""

    def read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> T | None:
        collected = Reporter()
        kind = root.get("kind")
        check(
            shape if isinstance(shape, Record) else shape(root),
            root,
            Check(collected, settings),
            kind.span if kind is not None else None,
        )
        reporter.diagnostics.extend(sorted(collected, key=_position))
        return None if collected.errors else meaning(document, root, settings)

    return read


def _position(finding: Diagnostic) -> tuple[int, int]:
    return (finding.span.line, finding.span.column) if finding.span else (0, 0)
