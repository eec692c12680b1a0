"""Which kinds of Kubernetes objects the world reads, and what names one of them."""

from __future__ import annotations

from typing import TypeAlias

from eastgate.world.externals import EXTERNAL_GROUP, ExternalWorkload
from eastgate.world.gateways import GATEWAY_GROUP, ROUTE_KINDS, Backend, Gateway, ReferenceGrant, Route
from eastgate.world.objects import Namespace, ObjectId, Service, ServiceAccount
from eastgate.world.pods import CONTROLLER_KINDS, Controller, Pod
from eastgate.world.secrets import Secret

__all__ = ["WorldObject", "canonical_group", "group_of", "object_id", "uses", "uses_kind"]

WorldObject: TypeAlias = (
    Namespace
    | Pod
    | Controller
    | ExternalWorkload
    | Service
    | ServiceAccount
    | Secret
    | Gateway
    | Route
    | ReferenceGrant
    | Backend
)
"""Anything that can be declared to a world. A Backend is declared by the dialect whose kind it is."""

_KINDS = {
    **dict.fromkeys(("Namespace", "Pod", "Secret", "Service", "ServiceAccount"), ""),
    **CONTROLLER_KINDS,
    "ExternalWorkload": EXTERNAL_GROUP,
    **dict.fromkeys(("Gateway", "ReferenceGrant", *ROUTE_KINDS), GATEWAY_GROUP),
}
_OLD_GROUP = "extensions"  # where apps and batch kinds lived before Kubernetes 1.16


def group_of(api_version: str) -> str:
    """The group of an `apiVersion`, empty for the core group."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def canonical_group(group: str, kind: str) -> str | None:
    """The group under which the world knows this kind of this group, or None where it does not."""
    home = _KINDS.get(kind)
    if home is None:
        return None
    moved = group == _OLD_GROUP and kind in CONTROLLER_KINDS
    return home if group == home or moved else None


def uses(api_version: str, kind: str) -> bool:
    """Whether the world reads objects of this kind; their version does not matter."""
    return canonical_group(group_of(api_version), kind) is not None


def uses_kind(kind: str) -> bool:
    """Whether the world reads objects of a kind of this name in some group."""
    return kind in _KINDS


def object_id(api_version: str, kind: str, namespace: str | None, name: str) -> ObjectId | None:
    """What the world calls this object, say to remove it; None for a kind that it does not read."""
    group = canonical_group(group_of(api_version), kind)
    if group is None:
        return None
    return ObjectId(group, kind, "" if kind == "Namespace" else namespace or "default", name)
