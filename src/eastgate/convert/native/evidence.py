"""Evidence that an installed mesh enforces what is written for it: a control plane that serves, and proxies in pods.

Definitions alone enforce nothing, and a pod without a proxy is reached past every policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from eastgate.cluster import Workload
from eastgate.convert.native.model import NativeMesh
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.reading.kubernetes import Connection, Resource
from eastgate.settings import Settings

_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", namespaced=True)
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_PROXIES: Final = {NativeMesh.ISTIO: "istio-proxy", NativeMesh.LINKERD: "linkerd-proxy"}
_REDIRECTION: Final = ("ambient.istio.io/redirection", "enabled")  # Istio writes it when ztunnel has taken a pod over


def has_proxy(workload: Workload, mesh: NativeMesh) -> bool:
    """Return whether a proxy of the mesh stands before a workload. Outside of the cluster, every workload has one."""
    if not workload.is_pod or _PROXIES[mesh] in workload.mesh_proxies:
        return True
    return mesh is NativeMesh.ISTIO and workload.annotations.get(_REDIRECTION[0]) == _REDIRECTION[1]


def control_plane_of(mesh: NativeMesh, settings: Settings) -> str:
    """Return what `is_serving` looks for, for a sentence."""
    if mesh is NativeMesh.LINKERD:
        return "Service linkerd-policy"
    return f"Service istiod in {settings.section(IstioSettings).root_namespace}"


async def is_serving(connection: Connection, mesh: NativeMesh, settings: Settings) -> bool:
    """Return whether the control plane of a mesh has a ready endpoint. Raises ApiError, UnreachableError.

    A revision of Istio has a Service of its own: `istiod-<revision>`.
    """
    if mesh is NativeMesh.LINKERD:
        slices, _ = await connection.list(_SLICES, label_selector=f"{_SERVICE_NAME}=linkerd-policy")
        return _has_ready(slices)
    slices, _ = await connection.list(_SLICES, settings.section(IstioSettings).root_namespace)
    return _has_ready(each for each in slices if _is_istiod((each["metadata"].get("labels") or {}).get(_SERVICE_NAME)))


def _is_istiod(service: str | None) -> bool:
    return service is not None and (service == "istiod" or service.startswith("istiod-"))


def _has_ready(slices: Iterable[dict[str, Any]]) -> bool:
    """Return whether any endpoint is ready; one that does not tell is, as the API has it."""
    endpoints = (endpoint for each in slices for endpoint in each.get("endpoints") or ())
    return any((endpoint.get("conditions") or {}).get("ready") is not False for endpoint in endpoints)
