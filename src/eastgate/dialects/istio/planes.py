"""Which of Istio's proxies serves a workload: a sidecar, ztunnel, or none, as labels say or as it is set for all.

Labels may be elsewhere. Then it is unknown whether a pod has a sidecar or no proxy. Both are tried, for all such pods
together: they are in one mesh, or there is none.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from eastgate.cluster import GATEWAY_NAME_LABEL, Workload, World
from eastgate.dialects.istio.settings import IstioDataPlane

_INJECTION: Final = "istio-injection"
_INJECT: Final = "sidecar.istio.io/inject"
_INJECTED: Final = "sidecar.istio.io/status"  # the annotation of a pod that has a sidecar
_REVISION: Final = "istio.io/rev"
_MODE: Final = "istio.io/dataplane-mode"
_SIDECAR: Final = "istio-proxy"  # the container
_NEVER_INJECTED: Final = frozenset({"kube-system", "kube-public", "kube-node-lease", "local-path-storage"})


class ServingPlane(enum.StrEnum):
    """The proxy in front of a workload."""

    SIDECAR = "sidecar"  # also the proxy that a gateway or a waypoint is
    ZTUNNEL = "ztunnel"
    NONE = "none"
    UNKNOWN = "unknown"  # a sidecar or none: no manifest says how pods get their proxies

    @property
    def may_be_sidecar(self) -> bool:
        """Return whether a sidecar serves the workload, or may do so."""
        return self in (ServingPlane.SIDECAR, ServingPlane.UNKNOWN)


def plane_of(workload: Workload, world: World, data_plane: IstioDataPlane) -> ServingPlane:
    """Return the proxy that serves a workload."""
    if is_gateway_pod(workload, world):
        return ServingPlane.SIDECAR
    match data_plane:
        case IstioDataPlane.SIDECAR:
            return ServingPlane.SIDECAR
        case IstioDataPlane.AMBIENT:
            return ServingPlane.ZTUNNEL
        case IstioDataPlane.NONE:
            return ServingPlane.NONE
        case IstioDataPlane.AUTO:
            return _labelled_plane(workload, world.namespace(workload.namespace).labels, world)


def is_gateway_pod(workload: Workload, world: World) -> bool:
    """Return whether a workload is the proxy of a Gateway, of either API, or of a waypoint.

    Those that Istio's installers make are known by what they write, where the Gateways are in other manifests.
    """
    if GATEWAY_NAME_LABEL in workload.labels or workload.is_installed_gateway:
        return True
    selectors = (gateway.selector for gateway in world.mesh_gateways.values())
    return any(selector and selector.items() <= workload.labels.items() for selector in selectors)


def _labelled_plane(workload: Workload, namespace: Mapping[str, str], world: World) -> ServingPlane:
    """Return the proxy that labels ask for. A pod with a sidecar is not captured by ztunnel.

    It is unknown where nothing says how the pod gets a proxy: no manifest declares its namespace, or no namespace and
    no pod of all the manifests asks for proxies. Manifests of an application often leave that to others.
    """
    if not workload.is_pod or workload.host_network:
        return ServingPlane.NONE
    has_sidecar = _INJECTED in workload.annotations or _SIDECAR in workload.mesh_proxies
    if has_sidecar or _is_injected(workload, namespace):
        return ServingPlane.SIDECAR
    own = workload.labels.get(_MODE)
    if own == "ambient" or (namespace.get(_MODE) == "ambient" and own != "none"):
        return ServingPlane.ZTUNNEL
    is_refused = workload.namespace in _NEVER_INJECTED or _INJECTION in namespace or workload.asks_for_sidecar is False
    if is_refused or (workload.namespace in world.namespaces and shows_proxies(world)):
        return ServingPlane.NONE
    return ServingPlane.UNKNOWN


LET_THEM_HAVE_ONE: Final = "let the pods have a proxy, or do not select them"
"""The way out where something refuses a proxy."""


def refusal_of(workload: Workload, world: World, its: str = "its") -> str | None:
    """Say what refuses a proxy to a workload that labels leave without one; None where they only give it none.

    `its` is the pronoun for the pods that the text is about.
    """
    if workload.host_network:
        return "hostNetwork pods have no proxy"
    if workload.namespace in _NEVER_INJECTED:
        return f"Istio gives pods in {workload.namespace} no proxy"
    namespace = world.namespace(workload.namespace).labels
    if namespace.get(_MODE) == "ambient" and workload.labels.get(_MODE) == "none":
        return f"{its} label {_MODE}: none refuses a proxy"
    if workload.asks_for_sidecar is False:
        kind, said = ("label", workload.labels) if _INJECT in workload.labels else ("annotation", workload.annotations)
        return f'{its} {kind} {_INJECT}: "{said[_INJECT]}" refuses a proxy'
    if _INJECTION in namespace:
        return f"the label {_INJECTION}: {namespace[_INJECTION]} of {its} namespace refuses a proxy"
    return None


def shows_proxies(world: World) -> bool:
    """Return whether a label of any namespace or pod asks for proxies, so that labels say which pods get one."""
    pods = (world.workloads[key] for key in world.meshed)
    return bool(world.meshed_namespaces) or any(not is_gateway_pod(pod, world) for pod in pods)


def injected_namespaces(world: World) -> list[str]:
    """Return the namespaces whose pods get a sidecar, unless they say otherwise."""
    return [
        name
        for name, namespace in sorted(world.namespaces.items())
        if _is_injected(Workload(f"{name}/-", name, "-"), namespace.labels)
    ]


def _is_injected(workload: Workload, namespace: Mapping[str, str]) -> bool:
    """Return whether a webhook of the injector takes the pod, and the injector does not decline it."""
    asked = workload.asks_for_sidecar
    if workload.namespace in _NEVER_INJECTED or asked is False:
        return False
    if _INJECTION in namespace:
        return namespace[_INJECTION] == "enabled"
    if _REVISION in namespace:
        return True
    return asked is True or _REVISION in workload.labels
