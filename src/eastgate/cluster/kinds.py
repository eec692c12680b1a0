"""The kinds of Kubernetes objects that the world reads, and the IDs of objects."""

from __future__ import annotations

from typing import TypeAlias

from eastgate.cluster.externals import EXTERNAL_GROUP, ExternalWorkload
from eastgate.cluster.gateways import (
    GATEWAY_GROUP,
    MESH_GATEWAY_GROUP,
    ROUTE_KINDS,
    Backend,
    Gateway,
    MeshGateway,
    ReferenceGrant,
    Route,
)
from eastgate.cluster.installations import INSTALLATIONS, MeshInstallation
from eastgate.cluster.objects import ClusterNode, ConfigMap, Namespace, ObjectId, Service, ServiceAccount
from eastgate.cluster.pods import API_KINDS, CONTROLLER_KINDS, Controller, Pod
from eastgate.cluster.secrets import Secret
from eastgate.cluster.slices import SLICE_GROUP, EndpointSlice

WorldObject: TypeAlias = (
    Namespace
    | ClusterNode
    | ConfigMap
    | Pod
    | Controller
    | ExternalWorkload
    | Service
    | EndpointSlice
    | ServiceAccount
    | Secret
    | Gateway
    | MeshGateway
    | MeshInstallation
    | Route
    | ReferenceGrant
    | Backend
)
"""Any object that can be declared to a world. A Backend is declared by the dialect of its kind."""

_KINDS = {
    **{("", kind): kind for kind in ("ConfigMap", "Namespace", "Node", "Pod", "Secret", "Service", "ServiceAccount")},
    **{(group, API_KINDS.get(kind, kind)): kind for kind, group in CONTROLLER_KINDS.items()},
    (EXTERNAL_GROUP, "ExternalWorkload"): "ExternalWorkload",
    (SLICE_GROUP, "EndpointSlice"): "EndpointSlice",
    (MESH_GATEWAY_GROUP, "Gateway"): "MeshGateway",
    **{(GATEWAY_GROUP, kind): kind for kind in ("Gateway", "ReferenceGrant", *ROUTE_KINDS)},
}
"""The name of a kind of a group in the world."""
_OLD_GROUP = "extensions"  # the group of apps and batch kinds before Kubernetes 1.16
_HOMES = {kind: CONTROLLER_KINDS[kind] for kind in CONTROLLER_KINDS if CONTROLLER_KINDS[kind] in ("apps", "batch")}
_CLUSTER_SCOPED = frozenset({"Istio", "Namespace", "Node"})
_NAMES = frozenset(kind for _, kind in _KINDS)


def group_of(api_version: str) -> str:
    """Return the group of an `apiVersion`, empty for the core group."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def canonical_group(group: str, kind: str) -> str | None:
    """Return the group under which the world knows this kind of this group, or None."""
    if group == _OLD_GROUP:
        return _HOMES.get(kind)
    return group if (group, kind) in _KINDS or (group, kind) in INSTALLATIONS else None


def world_kind(group: str, kind: str) -> str:
    """Return the name of a kind of a canonical group in the world."""
    return _KINDS.get((group, kind), "MeshInstallation")


def world_kinds() -> tuple[tuple[str, str], ...]:
    """Return the group and name of every kind that the world reads, except installations.

    A cluster has the objects that an installation creates.
    """
    return tuple(_KINDS)


def uses(api_version: str, kind: str) -> bool:
    """Return whether the world reads every object of this kind, in any version."""
    return canonical_group(group_of(api_version), kind) is not None and not may_install(api_version, kind)


def may_install(api_version: str, kind: str) -> bool:
    """Return whether objects of this kind may install a mesh. Most of them install other things."""
    return (group_of(api_version), kind) in INSTALLATIONS


def uses_kind(kind: str) -> bool:
    """Return whether the world reads objects of a kind of this name in some group."""
    return kind in _NAMES


def object_id(api_version: str, kind: str, namespace: str | None, name: str) -> ObjectId | None:
    """Return the ID of this object in the world, for example to remove it; None for an unread kind."""
    group = canonical_group(group_of(api_version), kind)
    if group is None:
        return None
    return ObjectId(group, kind, "" if kind in _CLUSTER_SCOPED else namespace or "default", name)
