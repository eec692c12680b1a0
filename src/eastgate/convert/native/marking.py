"""Marks on native objects: which policies they stand for, who owns them, and names that nothing else has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.cluster.resources import SOURCE_UID
from eastgate.convert.native.model import Json
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Plain

__all__ = [
    "MANAGED_BY",
    "MANAGER",
    "SOURCE",
    "SOURCE_UID",
    "PolicyOwner",
    "is_ours",
    "mark",
    "name_of",
    "object_id",
]

MANAGED_BY, MANAGER = "app.kubernetes.io/managed-by", "eastgate"
SOURCE = "eastgate.dev/source"
_LONGEST_PREFIX = 40


@dataclass(frozen=True, slots=True, order=True)
class PolicyOwner:
    """A policy as an object of the API server, which owns what stands for it."""

    uid: str
    api_version: str
    kind: str
    namespace: str | None
    name: str

    @property
    def reference(self) -> Json:
        """Return it as an entry of `ownerReferences`."""
        return {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}

    @property
    def path(self) -> str:
        """Return namespace and name; the name alone where it is cluster-scoped."""
        return self.name if self.namespace is None else f"{self.namespace}/{self.name}"

    @property
    def ref(self) -> PolicyRef:
        group = self.api_version.rpartition("/")[0]
        return PolicyRef(self.kind, self.namespace, self.name, group)


def object_id(manifest: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return the group, kind, namespace and name of an object."""
    metadata = manifest["metadata"]
    group = str(manifest["apiVersion"]).rpartition("/")[0]
    return group, str(manifest["kind"]), str(metadata.get("namespace", "")), str(metadata["name"])


def is_ours(manifest: Mapping[str, Any], sources: Collection[str]) -> bool:
    """Return whether an object was written for a policy: its labels say so, and its owners agree.

    An owner agrees that is the policy of the label, or one of `sources`, the UIDs of the policies that exist: where the
    policy of the label is gone, the others that the object stands for remain.
    """
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping):
        return False
    labels = metadata.get("labels") or {}
    uid = labels.get(SOURCE_UID)
    owners = {str(owner.get("uid")) for owner in metadata.get("ownerReferences") or ()}
    return labels.get(MANAGED_BY) == MANAGER and uid is not None and (uid in owners or not owners.isdisjoint(sources))


def name_of(prefix: str, parts: Sequence[object], taken: Iterable[str] = ()) -> str:
    """Return a name that follows from what it names: another content has another name.

    `taken` are names of objects that others have written. No name is theirs.
    """
    used = set(taken)
    short = prefix.replace(".", "-")[:_LONGEST_PREFIX].strip("-")
    number = 0
    while True:
        text = json.dumps([*parts, number], sort_keys=True, separators=(",", ":"))
        name = f"{short}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        if name not in used:
            return name
        number += 1


def mark(
    manifest: Mapping[str, Plain],
    name: str,
    namespace: str,
    owners: Iterable[PolicyOwner],
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """Return an object with the marks of the policies that it stands for, and no other labels and annotations.

    Those of a policy stay with it: in the mesh they might mean something, as `istio.io/dry-run` does.
    """
    listed = sorted(set(owners))
    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {MANAGED_BY: MANAGER, SOURCE_UID: listed[0].uid},
            "annotations": {**(annotations or {}), SOURCE: ",".join(owner.path for owner in listed)},
            "ownerReferences": [owner.reference for owner in listed],
        },
        "spec": manifest["spec"],
    }
