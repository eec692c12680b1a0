"""Clusters as an API server has them, and their state after each step."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any

from eastgate import Authority, Settings
from eastgate.authority.reading import Manifests, read_plain
from eastgate.convert.native import NativeMesh, NativePlan, NativeStep, NativeStepKind
from eastgate.convert.native.model import object_id

Manifest = dict[str, Any]
GEP_GROUP = "gateway.networking.x-k8s.io"
GEP_KINDS = ("AuthorizationPolicy", "XAuthorizationPolicy", "ClusterAuthorizationPolicy")


def is_source(manifest: Manifest) -> bool:
    return bool(str(manifest["apiVersion"]).startswith(GEP_GROUP) and manifest["kind"] in GEP_KINDS)


def stored(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Return objects as an API server has them: each has a UID that depends on its name."""
    objects = []
    for manifest in manifests:
        copied = json.loads(json.dumps(manifest))
        metadata = copied["metadata"]
        metadata.setdefault("uid", str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(object_id(copied)))))
        objects.append(copied)
    return objects


def read(manifests: Iterable[Manifest], chosen: Settings) -> Manifests:
    return read_plain(stored(manifests), chosen)


def mesh_authority(manifests: Iterable[Manifest], natives: Iterable[Manifest], chosen: Settings) -> Authority:
    """Return the authority of a mesh with native policies and without policies of GEP-3779."""
    things = [manifest for manifest in manifests if not is_source(manifest)]
    return Authority(read_plain([*things, *natives], chosen.enforced()))


def after(natives: dict[tuple[str, ...], Manifest], step: NativeStep) -> dict[tuple[str, ...], Manifest]:
    """Return the native objects after a step."""
    changed = dict(natives)
    if step.kind is NativeStepKind.DELETE:
        del changed[object_id(step.manifest)]
    else:
        changed[object_id(step.manifest)] = step.manifest
    return changed


def by_id(plan: NativePlan) -> dict[tuple[str, ...], Manifest]:
    return {object_id(manifest): manifest for manifest in plan.objects}


__all__ = [
    "Manifest",
    "NativeMesh",
    "after",
    "by_id",
    "is_source",
    "mesh_authority",
    "read",
    "stored",
]
