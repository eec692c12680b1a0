"""Callers outside of the mesh: a pod without a proxy cannot prove who it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from eastgate.cluster import World
from eastgate.dialects.istio.planes import ServingPlane, plane_of
from eastgate.dialects.istio.settings import IstioDataPlane
from eastgate.ir import Known, RawRequest
from eastgate.ir.attributes import IDENTITY, SOURCE_WORKLOAD, Attribute
from eastgate.records import dataclass

__all__ = ["MeshCallers"]


@dataclass(frozen=True, slots=True)
class MeshCallers:
    """Derives that a pod without a proxy has no identity. An account, and whoever is no known pod, keeps its own."""

    world: World
    depends_on: ClassVar[None] = None  # callers are compared by their identities, whoever has them

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return an absent identity for a pod outside of the mesh."""
        key = values.get(SOURCE_WORKLOAD)
        caller = self.world.workloads.get(key) if isinstance(key, str) else None
        if caller is None or plane_of(caller, self.world, IstioDataPlane.AUTO) is not ServingPlane.NONE:
            return {}
        return {IDENTITY: None}
