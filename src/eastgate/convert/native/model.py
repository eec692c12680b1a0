"""The native policies that should exist, and what became of each policy that they stand for."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from eastgate.basics.diagnostics import Code
from eastgate.basics.records import dataclass
from eastgate.cluster.resources import SOURCE_UID
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Plain

Json: TypeAlias = dict[str, Any]


class NativeMesh(enum.StrEnum):
    """The mesh whose policies are written."""

    ISTIO = "istio"
    LINKERD = "linkerd"


class Unwritable(enum.StrEnum):
    """What becomes of the pods of a policy that cannot be written, where the mesh would allow what is denied there."""

    LEAVE = "leave"  # the policy is not in force, and its status shows what is open
    CLOSE = "close"  # nobody reaches them


class NativeState(enum.StrEnum):
    """What became of a policy."""

    WRITTEN = "Written"  # the mesh enforces it
    COVERED = "Covered"  # it cannot be written, and the mesh answers all as it says, by what is written for others
    CLOSED = "Closed"  # it cannot be written, and nobody reaches the pods that it targets
    NOT_WRITTEN = "NotWritten"  # it is not in force


@dataclass(frozen=True, slots=True)
class NativeLoss:
    """A reason for which a policy cannot be written."""

    code: Code
    message: str
    help: str | None = None


@dataclass(frozen=True, slots=True)
class NativeDifference:
    """Requests that the mesh answers otherwise than the policies say; `allowed` is the verdict of the mesh.

    `destinations` are named as questions name them. `example` are the arguments of a question that shows it; None where
    the difference is only possible. `beside` are policies of the mesh that somebody else wrote for these destinations.
    """

    destinations: tuple[str, ...]
    allowed: bool
    example: tuple[str, ...] | None = None
    beside: tuple[PolicyRef, ...] = ()


@dataclass(frozen=True, slots=True)
class NativeOutcome:
    """What became of one policy: the objects that stand for it, why it is not written, and where the mesh differs.

    `also_closed` are pods that it does not target, and that were closed with those that it does.
    """

    source: PolicyRef
    uid: str
    state: NativeState
    objects: tuple[str, ...] = ()
    losses: tuple[NativeLoss, ...] = ()
    differences: tuple[NativeDifference, ...] = ()
    also_closed: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Return whether the mesh answers everything as this policy says."""
        return self.state in (NativeState.WRITTEN, NativeState.COVERED) and not self.differences


@dataclass(frozen=True, slots=True)
class ForeseenOutcome:
    """What would become of a policy if it were stored: why it could not be written, and what then becomes of its pods.

    `exactly`: the mesh can select its pods alone, so that no others would be closed.
    """

    losses: tuple[NativeLoss, ...]
    unwritable: Unwritable
    exactly: bool


@dataclass(frozen=True, slots=True)
class NativePlan:
    """The native objects that should exist, and an outcome for each policy, in the order of names.

    `doubts` name what could not be proven, for whatever policy. `is_wider`: the mesh allows what the policies deny.
    """

    mesh: NativeMesh
    objects: tuple[Json, ...]
    outcomes: tuple[NativeOutcome, ...]
    doubts: tuple[str, ...] = ()

    @property
    def is_wider(self) -> bool:
        """Return whether the mesh allows something that a policy denies: none of it could be closed."""
        return any(difference.allowed for outcome in self.outcomes for difference in outcome.differences)

    @property
    def sources(self) -> frozenset[str]:
        """Return the UIDs of all policies."""
        return frozenset(outcome.uid for outcome in self.outcomes)


# Marks on native objects: which policies they stand for, who owns them, and names that nothing else has.


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
