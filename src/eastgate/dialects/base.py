"""What a dialect is: the kinds that it reads, and how policies on a workload become layers.

Every dialect is a package of the same files: `codes` (what can be wrong), `shapes` (the resource, field by field),
`validation` and `values` (what must hold beyond types), `model` (the typed resource), `meaning` (document to model
and IR), `assemble` (models on a workload to layers). Whoever has read one can write the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from eastgate.diagnostics import Reporter
from eastgate.policy import Attachment, Layer
from eastgate.settings import Settings
from eastgate.sources import Document
from eastgate.sources.node import Node

__all__ = ["Dialect", "Kind"]

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Kind(Generic[P]):
    """One kind in one version. `read` reports what is wrong and gives None, or gives the policy."""

    group: str
    version: str
    kind: str
    read: Callable[[Document, Node, Settings, Reporter], P | None]


@dataclass(frozen=True, slots=True)
class Dialect(Generic[P]):
    """One policy API. `bystanders` are kinds of its groups that exist and are not for us to read."""

    name: str
    kinds: tuple[Kind[P], ...]
    layers: Callable[[Sequence[Attachment[P]], Settings], list[Layer]]
    bystanders: frozenset[tuple[str, str]] = field(default_factory=frozenset)
