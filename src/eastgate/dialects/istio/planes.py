"""The proxy of Istio that serves a workload: a sidecar, ztunnel, or none. Labels or a setting decide.

The labels may be in other manifests. Then it is unknown whether a pod has a sidecar or no proxy. Both cases are tried
for all such pods together: either all of them are in the mesh, or none.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import ClassVar, Final

from eastgate.basics.records import dataclass
from eastgate.cluster import GATEWAY_NAME_LABEL, Workload, World
from eastgate.dialects.istio.model import MtlsMode
from eastgate.dialects.istio.settings import IstioDataPlane
from eastgate.ir import Placement, PolicyRef, ProxyReading, ScopeKind, Site

# Scopes and readings that depend on the proxy that enforces, as data. `str` is for output.


WITHOUT_PROXY = Placement(Site.WORKLOAD, "istio, without a proxy")


# Scopes


@dataclass(frozen=True, slots=True)
class PortScope:
    """The ports with their own mode of mTLS, and the rest of the chain's scope."""

    ports: tuple[int, ...]
    mode: MtlsMode
    of: object
    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS
    refs: tuple[PolicyRef, ...] = ()

    def __str__(self) -> str:
        ports = ", ".join(map(str, self.ports))
        other = f", {self.of}" if self.of is not None else ""
        return f"port {ports}, mode {self.mode}{other}"


@dataclass(frozen=True, slots=True)
class WaypointScope:
    """The traffic through a waypoint, to a Service or to the workload itself."""

    waypoint: str
    service: str | None
    of: object = None
    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS
    refs: ClassVar[tuple[PolicyRef, ...]] = ()

    def __str__(self) -> str:
        addressed = "the workload itself" if self.service is None else f"Service {self.service}"
        other = f", {self.of}" if self.of is not None else ""
        return f"addressed to {addressed}, through waypoint {self.waypoint}{other}"


@dataclass(frozen=True, slots=True)
class DirectScope:
    """The traffic that goes through no waypoint."""

    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS
    refs: ClassVar[tuple[PolicyRef, ...]] = ()

    def __str__(self) -> str:
        return "through no waypoint"


# Readings


@dataclass(frozen=True, slots=True)
class DroppedFields:
    """The fields of a rule that ztunnel does not read, and the effect on the rule."""

    policy: PolicyRef
    index: int
    fields: tuple[str, ...]
    effect: str
    setting: ClassVar[str] = "istioDataPlane"

    def __str__(self) -> str:
        fields = ", ".join(self.fields)
        return f"ztunnel does not read {fields} of {self.policy} rule {self.index}, so that the rule {self.effect}"


@dataclass(frozen=True, slots=True)
class UnsupportedAction:
    """A policy with an action that ztunnel does not have, so that it does not enforce the policy."""

    policy: PolicyRef
    action: str
    setting: ClassVar[str] = "istioDataPlane"

    def __str__(self) -> str:
        return f"ztunnel has no action {self.action}, so that {self.policy} has no effect"


@dataclass(frozen=True, slots=True)
class TiedPolicies:
    """PeerAuthentications of one level and one age. ztunnel may use any of them, so each was tried."""

    policies: tuple[PolicyRef, ...]
    setting: ClassVar[str] = "istioDataPlane"

    def __str__(self) -> str:
        *others, last = map(str, self.policies)
        return f"ztunnel may use any of {', '.join(others)} and {last}, which have one age, so each was tried"


@dataclass(frozen=True, slots=True)
class WaypointIdentity:
    """The identity that ztunnel sees behind a waypoint."""

    waypoint: str
    identity: str
    setting: ClassVar[str] = "istioDataPlane"

    def __str__(self) -> str:
        return f"ztunnel sees {self.identity}, the identity of waypoint {self.waypoint}, instead of the caller's"


@dataclass(frozen=True, slots=True)
class NoIdentity:
    """Ports without mTLS, on which callers have no identity."""

    policy: PolicyRef
    setting: ClassVar[str] = "istioDataPlane"

    def __str__(self) -> str:
        return f"{self.policy} has mode {MtlsMode.DISABLE} here, so that callers have no identity"


_SETTING = "istioDataPlane"
_CHOICES = ("sidecar", "ambient", "none")
_SIDECAR_PROXY = "a sidecar of Istio"


def without_proxy(policies: tuple[PolicyRef, ...], choice: IstioDataPlane, refusal: str | None) -> ProxyReading:
    """Return the reading at a workload without a proxy: its policies are not enforced.

    `refusal` says what refuses a proxy; it is None if labels only give none.
    """
    is_set = choice is IstioDataPlane.NONE
    why = "no pod has a proxy of Istio" if is_set else refusal or "no label gives this workload a proxy"
    return ProxyReading(policies, None, why, _SETTING, choice)


def unknown_proxy(policies: tuple[PolicyRef, ...]) -> ProxyReading:
    """Return the reading at a workload that has either a sidecar or no proxy: both were tried."""
    why = "no manifest says whether it has a proxy"
    return ProxyReading(policies, _SIDECAR_PROXY, why, _SETTING, IstioDataPlane.AUTO, certain=False, choices=_CHOICES)


def unknown_caller() -> ProxyReading:
    """Return the reading of a caller that has either a sidecar or no proxy: without one, it has no identity."""
    return unknown_proxy(())


_INJECTION: Final = "istio-injection"
_INJECT: Final = "sidecar.istio.io/inject"
_INJECTED: Final = "sidecar.istio.io/status"  # the annotation of a pod that has a sidecar
_REVISION: Final = "istio.io/rev"
_MODE: Final = "istio.io/dataplane-mode"
_SIDECAR_CONTAINER: Final = "istio-proxy"  # the container
_NEVER_INJECTED: Final = frozenset({"kube-system", "kube-public", "kube-node-lease", "local-path-storage"})


class ServingPlane(enum.StrEnum):
    """The proxy in front of a workload."""

    SIDECAR = "sidecar"  # also the proxy of a gateway or a waypoint
    ZTUNNEL = "ztunnel"
    NONE = "none"
    UNKNOWN = "unknown"  # a sidecar or none: no manifest gives pods their proxies

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

    If the Gateways are in other manifests, gateway pods are recognized by the labels of Istio's installers.
    """
    if GATEWAY_NAME_LABEL in workload.labels or workload.is_installed_gateway:
        return True
    selectors = (gateway.selector for gateway in world.mesh_gateways.values())
    return any(selector and selector.items() <= workload.labels.items() for selector in selectors)


def _labelled_plane(workload: Workload, namespace: Mapping[str, str], world: World) -> ServingPlane:
    """Return the proxy that labels ask for. ztunnel does not capture a pod with a sidecar.

    It is unknown if nothing gives the pod a proxy: no manifest declares its namespace, or no namespace and no pod of
    all manifests asks for proxies. Manifests of an application often leave that to other manifests.
    """
    if not workload.is_pod or workload.host_network or _is_ztunnel(workload):
        return ServingPlane.NONE
    has_sidecar = _INJECTED in workload.annotations or _SIDECAR_CONTAINER in workload.mesh_proxies
    if has_sidecar or _is_injected(workload, namespace):
        return ServingPlane.SIDECAR
    own = workload.labels.get(_MODE)
    if own == "ambient" or (namespace.get(_MODE) == "ambient" and own != "none"):
        return ServingPlane.ZTUNNEL
    is_refused = workload.namespace in _NEVER_INJECTED or _INJECTION in namespace or workload.asks_for_sidecar is False
    if is_refused or (workload.namespace in world.namespaces and shows_proxies(world)):
        return ServingPlane.NONE
    return ServingPlane.UNKNOWN


def _is_ztunnel(workload: Workload) -> bool:
    """Return whether it is ztunnel itself, by the labels of its installers: its container is named like a sidecar."""
    return workload.labels.get("app") == "ztunnel" and workload.labels.get(_MODE) == "none"


ALLOW_PROXY_HELP: Final = "allow the pods a proxy, or do not select them"
"""The help text if something refuses a proxy."""


def refusal_of(workload: Workload, world: World, its: str = "its") -> str | None:
    """Return what refuses a proxy to a workload whose labels leave it without one; None if nothing refuses it.

    `its` is the pronoun for the pods in the text.
    """
    if workload.host_network:
        return "hostNetwork pods have no proxy"
    if workload.namespace in _NEVER_INJECTED:
        return f"Istio gives pods in {workload.namespace} no proxy"
    namespace = world.namespace(workload.namespace).labels
    if workload.labels.get(_MODE) == "none" and (namespace.get(_MODE) == "ambient" or _is_ztunnel(workload)):
        return f"{its} label {_MODE}: none refuses a proxy"
    if workload.asks_for_sidecar is False:
        kind, said = ("label", workload.labels) if _INJECT in workload.labels else ("annotation", workload.annotations)
        return f'{its} {kind} {_INJECT}: "{said[_INJECT]}" refuses a proxy'
    if _INJECTION in namespace:
        return f"the label {_INJECTION}: {namespace[_INJECTION]} of {its} namespace refuses a proxy"
    return None


def shows_proxies(world: World) -> bool:
    """Return whether a label of any namespace or pod asks for proxies, so that labels decide which pods get one."""
    pods = (world.workloads[key] for key in world.meshed)
    return bool(world.meshed_namespaces) or any(not is_gateway_pod(pod, world) for pod in pods)


def injected_namespaces(world: World) -> list[str]:
    """Return the namespaces whose pods get a sidecar by default."""
    return [
        name
        for name, namespace in sorted(world.namespaces.items())
        if _is_injected(Workload(f"{name}/-", name, "-"), namespace.labels)
    ]


def _is_injected(workload: Workload, namespace: Mapping[str, str]) -> bool:
    """Return whether a webhook of the injector selects the pod, and the injector does not decline it."""
    asked = workload.asks_for_sidecar
    if workload.namespace in _NEVER_INJECTED or asked is False:
        return False
    if _INJECTION in namespace:
        return namespace[_INJECTION] == "enabled"
    if _REVISION in namespace:
        return True
    return asked is True or _REVISION in workload.labels
