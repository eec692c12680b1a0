"""What a dialect is: the kinds that it reads, and how policies on a workload become layers.

Every dialect is a package of the same files: `codes` (what can be wrong), `shapes` (the resource, field by field),
`validation` and `values` (what must hold beyond types), `model` (the typed resource), `meaning` (document to model
and IR), `assemble` (models on a workload to layers). Whoever has read one can write the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from eastgate.diagnostics import Diagnostic, Reporter
from eastgate.policy import Attachment, Layer
from eastgate.schema import Check, Record, check
from eastgate.settings import Settings
from eastgate.sources import Document
from eastgate.sources.node import Node
from eastgate.world import World

__all__ = ["Dialect", "Kind", "reader"]

P = TypeVar("P")
C = TypeVar("C")

Read = Callable[[Document, Node, Settings, Reporter], P | None]


@dataclass(frozen=True, slots=True)
class Kind(Generic[P]):
    """One kind in one version. `read` reports what is wrong and gives None, or gives what the document describes."""

    group: str
    version: str
    kind: str
    read: Read[P]


@dataclass(frozen=True, slots=True)
class Dialect(Generic[P]):
    """One policy API.

    `layers` is given the policies of this dialect on one point of enforcement. `bystanders` are kinds of its groups
    that exist and are not for us to read.
    """

    name: str
    model: type[P]
    kinds: tuple[Kind[P], ...]
    layers: Callable[[Sequence[Attachment[P]], Settings, World], list[Layer]]
    bystanders: frozenset[tuple[str, str]] = field(default_factory=frozenset)

    def assemble(self, attached: Sequence[Attachment[object]], settings: Settings, world: World) -> list[Layer]:
        """The layers that the policies of this dialect make at a point; none where it has none there."""
        ours = [Attachment(policy, one.service) for one in attached if isinstance(policy := one.policy, self.model)]
        return self.layers(ours, settings, world) if ours else []


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
