"""Callers outside of the mesh: a pod without a proxy cannot prove who it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.dialects.istio.plane_provenance import unknown_caller
from eastgate.dialects.istio.planes import ServingPlane, plane_of
from eastgate.dialects.istio.settings import IstioDataPlane
from eastgate.ir import Known, ProxyReading, RawRequest
from eastgate.ir.attributes import IDENTITY, SOURCE_WORKLOAD, Attribute


@dataclass(frozen=True, slots=True)
class MeshCallers:
    """Derives that a pod without a proxy has no identity. An account, and a caller that is no known pod, keeps its own.

    `data_plane` says which pods have a proxy. `is_one_mesh`: the proxy of the workload is unknown. It has one only if
    all callers whose proxy is unknown have one. Before a workload with a proxy, such a caller may have none.
    """

    world: World
    data_plane: IstioDataPlane
    is_one_mesh: bool = False
    depends_on: ClassVar[None] = None  # callers are compared by their identities, whoever has them

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return an absent identity for a pod outside of the mesh."""
        return {IDENTITY: None} if self._plane(values) is ServingPlane.NONE else {}

    def otherwise(self, values: Mapping[Attribute, Known]) -> tuple[Mapping[Attribute, Known], ProxyReading] | None:
        """Return an absent identity for a pod that may be outside of the mesh."""
        if self.is_one_mesh or self._plane(values) is not ServingPlane.UNKNOWN or values.get(IDENTITY) is None:
            return None
        return {IDENTITY: None}, unknown_caller()

    def _plane(self, values: Mapping[Attribute, Known]) -> ServingPlane | None:
        """Return the proxy of the calling pod; None where the caller is no known pod."""
        key = values.get(SOURCE_WORKLOAD)
        caller = self.world.workloads.get(key) if isinstance(key, str) else None
        return None if caller is None else plane_of(caller, self.world, self.data_plane)
