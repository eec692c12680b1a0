"""The properties of a CustomResourceDefinition other than the shape."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.shapes import Record


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. Columns of priority 1 are shown with `-o wide`."""

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
    """The common properties of all versions of a served kind.

    `attachment` is the way in which the policy attaches to its targets (GEP-713), for tools that look for such
    policies. If the kind treats null as a field left out, `widening_nulls` are the exceptions.
    """

    plural: str
    status: Status
    attachment: str | None = None
    widening_nulls: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """The properties of one served version. A `superseded` version is served only if a conversion exists.

    `shape` is needed if files may have other forms than those that an API server stores.
    """

    resource: ServedResource
    columns: tuple[Column, ...]
    superseded: str | None = None
    shape: Record[Any] | None = None


INHERITED = "Inherited"

# Columns of several kinds
AGE = Column("Age", ".metadata.creationTimestamp", "date")
ACTION = Column("Action", ".spec.action")
LEVEL = Column("Level", ".spec.enforcementLevel", priority=1)
TARGETS = Column("Targets", ".spec.targetRefs")
# A column shows the first value at its path. So the paths of problems select only problems, of any target. An empty
# column alone is ambiguous: `Programmed` shows whether a policy is in force or no controller has read it.
PROGRAMMED = Column("Programmed", '.status.conditions[?(@.type=="Programmed")].status')
PROBLEM = Column("Problem", '.status.conditions[?(@.status!="True")].reason')
_PROBLEM = Column("Problem", '.status.ancestors[*].conditions[?(@.status!="True")].reason')
_OF_EASTGATE = '@.controllerName=="eastgate.dev/policy-controller"'  # its first entry is the worst
_PROGRAMMED = Column("Programmed", f'.status.ancestors[?({_OF_EASTGATE})].conditions[?(@.type=="Programmed")].status')
_CONTROLLER = Column("Controller", ".status.ancestors[*].controllerName", priority=1)
ATTACHED = (_CONTROLLER, _PROGRAMMED, _PROBLEM, AGE)
