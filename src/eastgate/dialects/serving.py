"""The serving of a kind by an API server: what its CustomResourceDefinition has beside the shape."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.shapes import Record


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; those of priority 1 show with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


class Status(Enum):
    """The content of a status: conditions for each target of the policy (GEP-713), conditions alone, or, for routes,
    conditions for each parent.
    """

    ANCESTORS = auto()
    CONDITIONS = auto()
    PARENTS = auto()


@dataclass(frozen=True, slots=True)
class ServedResource:
    """The properties that all versions of a served kind have in common.

    `attachment` is how the policy attaches to its targets (GEP-713), for tools that look for such policies. In a kind
    that takes a null for a field left out, `widening_nulls` are the fields in which it does not.
    """

    plural: str
    status: Status
    attachment: str | None = None
    widening_nulls: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """The serving of one version. One that is `superseded` is served only where something converts it.

    `shape` is needed where files may have other forms than an API server stores.
    """

    resource: ServedResource
    columns: tuple[Column, ...]
    superseded: str | None = None
    shape: Record[Any] | None = None


INHERITED = "Inherited"

# Columns that several kinds have
AGE = Column("Age", ".metadata.creationTimestamp", "date")
ACTION = Column("Action", ".spec.action")
LEVEL = Column("Level", ".spec.enforcementLevel", priority=1)
TARGETS = Column("Targets", ".spec.targetRefs")
# A column shows the first value at its path, so that the paths of problems lead only to problems, of any target. An
# empty one says nothing by itself: `Programmed` tells apart a policy in force and one that no controller has looked at.
PROGRAMMED = Column("Programmed", '.status.conditions[?(@.type=="Programmed")].status')
PROBLEM = Column("Problem", '.status.conditions[?(@.status!="True")].reason')
_PROBLEM = Column("Problem", '.status.ancestors[*].conditions[?(@.status!="True")].reason')
_OURS = '@.controllerName=="eastgate.dev/policy-controller"'  # whose worst entry is its first
_PROGRAMMED = Column("Programmed", f'.status.ancestors[?({_OURS})].conditions[?(@.type=="Programmed")].status')
_CONTROLLER = Column("Controller", ".status.ancestors[*].controllerName", priority=1)
ATTACHED = (_CONTROLLER, _PROGRAMMED, _PROBLEM, AGE)
