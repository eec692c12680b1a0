"""Which of Istio's proxies serves a workload: a sidecar, ztunnel, or none, as labels say or as it is set for all."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from eastgate.cluster import GATEWAY_NAME_LABEL, Workload, World
from eastgate.dialects.istio.settings import IstioDataPlane

__all__ = ["ServingPlane", "injected_namespaces", "is_assumed", "is_gateway_pod", "plane_of"]

_INJECTION: Final = "istio-injection"
_INJECT: Final = "sidecar.istio.io/inject"
_INJECTED: Final = "sidecar.istio.io/status"  # the annotation of a pod that has a sidecar
_TEMPLATES: Final = "inject.istio.io/templates"
_INSTALLED: Final = "istio"
_REVISION: Final = "istio.io/rev"
_MODE: Final = "istio.io/dataplane-mode"
_MESH_LABELS: Final = frozenset({_INJECTION, _INJECT, _REVISION, _MODE})
_NEVER_INJECTED: Final = frozenset({"kube-system", "kube-public", "kube-node-lease", "local-path-storage"})


class ServingPlane(enum.StrEnum):
    """The proxy in front of a workload."""

    SIDECAR = "sidecar"  # also the proxy that a gateway or a waypoint is
    ZTUNNEL = "ztunnel"
    NONE = "none"


def plane_of(workload: Workload, world: World, data_plane: IstioDataPlane) -> ServingPlane:
    """Return the proxy that serves a workload."""
    if is_gateway_pod(workload, world):
        return ServingPlane.SIDECAR
    match data_plane:
        case IstioDataPlane.SIDECAR:
            return ServingPlane.SIDECAR
        case IstioDataPlane.AMBIENT:
            return ServingPlane.ZTUNNEL
        case IstioDataPlane.AUTO:
            return _labelled_plane(workload, world.namespace(workload.namespace).labels, world)


def is_gateway_pod(workload: Workload, world: World) -> bool:
    """Return whether a workload is the proxy of a Gateway, of either API, or of a waypoint.

    Those that Istio's installers make are known by what they write, where the Gateways are in other manifests.
    """
    if GATEWAY_NAME_LABEL in workload.labels or workload.labels.get(_INSTALLED, "").endswith("gateway"):
        return True
    if "gateway" in workload.annotations.get(_TEMPLATES, "").split(","):
        return True
    selectors = (gateway.selector for gateway in world.mesh_gateways.values())
    return any(selector and selector.items() <= workload.labels.items() for selector in selectors)


def _labelled_plane(workload: Workload, namespace: Mapping[str, str], world: World) -> ServingPlane:
    """Return the proxy that labels ask for. A pod with a sidecar is not captured by ztunnel.

    Where no manifest declares the namespace, no other namespace says anything about a mesh, and neither does the pod,
    it is taken to have a sidecar: manifests of an application often leave its namespace to others.
    """
    if not workload.is_pod or workload.host_network:
        return ServingPlane.NONE
    if _INJECTED in workload.annotations or _is_injected(workload, namespace):
        return ServingPlane.SIDECAR
    own = workload.labels.get(_MODE)
    if own == "ambient" or (namespace.get(_MODE) == "ambient" and own != "none"):
        return ServingPlane.ZTUNNEL
    return ServingPlane.SIDECAR if _is_unlabelled(workload, world) else ServingPlane.NONE


def is_assumed(workload: Workload, world: World, data_plane: IstioDataPlane) -> bool:
    """Return whether a workload is taken to have a sidecar because no label says anything about a mesh."""
    is_auto = data_plane is IstioDataPlane.AUTO and not is_gateway_pod(workload, world)
    has_proxy = is_auto and plane_of(workload, world, data_plane) is ServingPlane.SIDECAR
    return has_proxy and _INJECTED not in workload.annotations and _is_unlabelled(workload, world)


def _is_unlabelled(workload: Workload, world: World) -> bool:
    """Return whether neither a pod, whose namespace is in no manifest, nor any namespace says anything about a mesh."""
    if workload.namespace in _NEVER_INJECTED or workload.namespace in world.namespaces:
        return False
    if _MESH_LABELS & (workload.labels.keys() | workload.annotations.keys()):
        return False
    return not any(_MESH_LABELS & known.labels.keys() for known in world.namespaces.values())


def injected_namespaces(world: World) -> list[str]:
    """Return the namespaces whose pods get a sidecar, unless they say otherwise."""
    return [
        name
        for name, namespace in sorted(world.namespaces.items())
        if _is_injected(Workload(f"{name}/-", name, "-"), namespace.labels)
    ]


def _is_injected(workload: Workload, namespace: Mapping[str, str]) -> bool:
    """Return whether a webhook of the injector takes the pod, and the injector does not decline it."""
    asked = workload.labels.get(_INJECT)
    if workload.namespace in _NEVER_INJECTED or asked == "false":
        return False
    if asked is None and workload.annotations.get(_INJECT) == "false":
        return False
    if _INJECTION in namespace:
        return namespace[_INJECTION] == "enabled"
    if _REVISION in namespace:
        return True
    return asked == "true" or _REVISION in workload.labels
