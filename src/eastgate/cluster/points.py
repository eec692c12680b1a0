"""Points of enforcement: what a request passes on its way, and where policies are applied."""

from __future__ import annotations

from typing import TypeAlias

from eastgate.cluster.targets import BackendNamed, GatewayNamed, RouteNamed
from eastgate.ir import Unroutable
from eastgate.records import dataclass

__all__ = ["DeadEnd", "NamedPoint", "Point", "WorkloadKey"]

WorkloadKey: TypeAlias = str
"""A workload by its key in the world, `namespace/name`."""

NamedPoint: TypeAlias = GatewayNamed | RouteNamed | BackendNamed
"""A point that is no workload. It may be looked at whether it is declared or not."""


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """The end of a way that leads nowhere: every request that arrives here is refused."""

    why: Unroutable

    def __str__(self) -> str:
        return str(self.why)


Point: TypeAlias = WorkloadKey | NamedPoint | DeadEnd
