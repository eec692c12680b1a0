"""What a dialect is: the kinds that it reads, and how policies on a workload become layers.

Every dialect is a package of the same files: `codes` (what can be wrong), `shapes` (the resource, field by field),
`validation` and `values` (what must hold beyond types), `model` (the typed resource), `meaning` (document to model
and IR), `assemble` (models on a workload to layers). Whoever has read one can write the next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from eastgate.diagnostics import Diagnostic, Reporter
from eastgate.policy import Attachment, Layer
from eastgate.schema import Check, Record, check
from eastgate.settings import Settings
from eastgate.sources import Document
from eastgate.sources.node import Node
from eastgate.world import Manifest, Workload, World, WorldObject

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["Condition", "Dialect", "Kind", "Scene", "reader"]

P = TypeVar("P")
C = TypeVar("C")

Read = Callable[[Document, Node, Settings, Reporter], P | None]


@dataclass(frozen=True, slots=True)
class Kind(Generic[P]):
    """One kind in one version. `read` reports what is wrong and gives None, or gives what the document describes.

    `unique`: no other API has a kind of this name, so that one with a misspelt group must be meant for this one.
    """

    group: str
    version: str
    kind: str
    read: Read[P]
    unique: bool = True


@dataclass(frozen=True, slots=True)
class Scene:
    """What layers depend on beside the policies. `stance` is what the dialect itself said of the workload."""

    settings: Settings
    world: World
    stance: Hashable = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a resource, as Kubernetes writes it."""

    type: str
    status: str
    reason: str
    message: str

    def to_json(self) -> Mapping[str, str]:
        """As plain data."""
        return {"type": self.type, "status": self.status, "reason": self.reason, "message": self.message}


@dataclass(frozen=True, slots=True)
class Dialect(Generic[P]):
    """One policy API.

    `layers` is given the policies of this dialect on one point of enforcement. Where the workload itself has a say, in
    its annotations perhaps, `stance` tells all of it that matters, or None; workloads with the same policies and the
    same stance decide alike. `examine` says what can be said only beside everything else that was read: an error
    about a policy rejects it. `inspect` says what is wrong with an object of another API that refers to this one.
    `status` are the conditions that a policy would show. `lint` gives what lint needs to know; nothing else imports it.
    `bystanders` are kinds of its groups that exist and are not for us to read.
    """

    name: str
    model: type[P]
    kinds: tuple[Kind[P], ...]
    layers: Callable[[Sequence[Attachment[P]], Scene], list[Layer]]
    lint: Callable[[], Linting[P]]
    stance: Callable[[Workload, Sequence[Attachment[P]], Scene], Hashable] | None = None
    examine: Callable[[Sequence[P], Settings, World], Iterable[tuple[P | None, Diagnostic]]] | None = None
    inspect: Callable[[Manifest, WorldObject, Reporter], None] | None = None
    status: Callable[[P, Sequence[P], Settings, World], Sequence[Condition]] | None = None
    bystanders: frozenset[tuple[str, str]] = field(default_factory=frozenset)

    def findings(
        self, policies: Sequence[object], settings: Settings, world: World
    ) -> Iterable[tuple[P | None, Diagnostic]]:
        """What `examine` says of those policies that are of this dialect."""
        return self.examine(self._of(policies), settings, world) if self.examine is not None else ()

    def conditions(
        self, policy: object, policies: Sequence[object], settings: Settings, world: World
    ) -> Sequence[Condition]:
        """What a policy would show, if it is of this dialect."""
        if self.status is None or not isinstance(policy, self.model):
            return ()
        return self.status(policy, self._of(policies), settings, world)

    def _of(self, policies: Sequence[object]) -> list[P]:
        return [policy for policy in policies if isinstance(policy, self.model)]

    def stance_of(self, workload: Workload, attached: Sequence[Attachment[object]], scene: Scene) -> Hashable:
        """All that the layers of a workload depend on beside its policies; None where that is nothing."""
        return self.stance(workload, self._ours(attached), scene) if self.stance is not None else None

    def assemble(self, attached: Sequence[Attachment[object]], scene: Scene) -> list[Layer]:
        """The layers that this dialect makes at a point; none where it has nothing to say there."""
        ours = self._ours(attached)
        return self.layers(ours, scene) if ours or scene.stance is not None else []

    def _ours(self, attached: Sequence[Attachment[object]]) -> list[Attachment[P]]:
        return [Attachment(policy, one.service) for one in attached if isinstance(policy := one.policy, self.model)]


def reader(
    shape: Record[C] | Callable[[Node], Record[C]],
    context: Callable[[Settings], C],
    meaning: Callable[[Document, Node, Settings], P],
) -> Read[P]:
    """Check a document against its shape; where nothing is wrong, give its meaning."""

    def read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> P | None:
        found = Reporter()
        kind = root.get("kind")
        check(
            shape if isinstance(shape, Record) else shape(root),
            root,
            Check(found, context(settings)),
            kind.span if kind is not None else None,
        )
        reporter.found.extend(sorted(found, key=_place))
        return None if found.errors else meaning(document, root, settings)

    return read


def _place(finding: Diagnostic) -> tuple[int, int]:
    return (finding.span.line, finding.span.column) if finding.span else (0, 0)
