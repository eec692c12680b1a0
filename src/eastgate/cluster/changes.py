"""The changes that an update makes to the world: only what they touch need be looked at again."""

from __future__ import annotations

from eastgate.basics.records import dataclass
from eastgate.cluster.objects import ObjectId


@dataclass(frozen=True, slots=True)
class Change:
    """The difference that one update made.

    A workload is `changed` where anything about it is another that a policy can depend on: its labels,
    annotations, service account or name in the mesh, ports, probes, addresses and owners, the Services
    it stands behind, and the labels and annotations of its namespace. `services` are those that were
    declared, removed or declared differently, and those that have other pods than before. `objects`
    are the declared objects that are new, gone or different.
    """

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    services: frozenset[str] = frozenset()
    objects: frozenset[ObjectId] = frozenset()

    @property
    def workloads(self) -> frozenset[str]:
        """Return the keys of all workloads to look at again."""
        return self.added | self.removed | self.changed

    def __or__(self, later: Change) -> Change:
        """Return this change and a later one as one. A workload that came and went may be in several of the sets."""
        return Change(
            self.added | later.added,
            self.removed | later.removed,
            self.changed | later.changed,
            self.services | later.services,
            self.objects | later.objects,
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.services or self.objects)
