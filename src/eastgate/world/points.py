"""Points of enforcement: what a request passes on its way, and where policies are applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from eastgate.policy import Unroutable
from eastgate.world.targets import BackendNamed, GatewayNamed, RouteNamed

__all__ = ["DeadEnd", "NamedPoint", "Point", "WorkloadKey"]

WorkloadKey: TypeAlias = str
"""A workload by its key in the world, `namespace/name`."""

NamedPoint: TypeAlias = GatewayNamed | RouteNamed | BackendNamed
"""A point that is no workload. It may be looked at whether it is declared or not."""


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """Where a way ends before it leads anywhere: whatever arrives here is refused."""

    why: Unroutable

    def __str__(self) -> str:
        return str(self.why)


Point: TypeAlias = WorkloadKey | NamedPoint | DeadEnd
