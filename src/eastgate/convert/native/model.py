"""The native policies that should exist, and the outcome for each source policy."""

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
    """The treatment of pods whose policy cannot be written, if the mesh would allow requests that it denies."""

    LEAVE = "leave"  # the policy is not in force, and its status shows what is open
    CLOSE = "close"  # the mesh denies every request to them


class NativeState(enum.StrEnum):
    """The outcome for a policy."""

    WRITTEN = "Written"  # the mesh enforces it
    COVERED = "Covered"  # it cannot be written, but the objects of other policies have the same effect
    CLOSED = "Closed"  # it cannot be written, and the mesh denies every request to its pods
    NOT_WRITTEN = "NotWritten"  # it is not in force


@dataclass(frozen=True, slots=True)
class NativeLoss:
    """A reason why a policy cannot be written."""

    code: Code
    message: str
    help: str | None = None


@dataclass(frozen=True, slots=True)
class NativeDifference:
    """Requests with another verdict in the mesh than in the policies. `allowed` is the verdict of the mesh.

    `destinations` have the names that questions use. `example` is the arguments of a question that shows the
    difference; None if the difference is only possible. `beside` are policies of the mesh for these destinations that
    Eastgate did not write.
    """

    destinations: tuple[str, ...]
    allowed: bool
    example: tuple[str, ...] | None = None
    beside: tuple[PolicyRef, ...] = ()


@dataclass(frozen=True, slots=True)
class NativeOutcome:
    """The outcome for one policy: its objects, the reasons why it is not written, and the differences in the mesh.

    `also_closed` are pods that the policy does not target and that were closed together with its own.
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
        """Return whether every verdict of the mesh is the verdict of this policy."""
        return self.state in (NativeState.WRITTEN, NativeState.COVERED) and not self.differences


@dataclass(frozen=True, slots=True)
class ForeseenOutcome:
    """The expected outcome of storing a policy: the losses that prevent it from being written, and the treatment of its
    pods.

    `exactly`: the mesh can select its pods alone, so that no other pods would be closed.
    """

    losses: tuple[NativeLoss, ...]
    unwritable: Unwritable
    exactly: bool


@dataclass(frozen=True, slots=True)
class NativePlan:
    """The native objects that should exist, and an outcome for each policy, in the order of names.

    `doubts` name what could not be proven for any policy. `is_wider`: the mesh allows requests that the policies deny.
    """

    mesh: NativeMesh
    objects: tuple[Json, ...]
    outcomes: tuple[NativeOutcome, ...]
    doubts: tuple[str, ...] = ()

    @property
    def is_wider(self) -> bool:
        """Return whether the mesh allows some request that a policy denies and that could not be closed."""
        return any(difference.allowed for outcome in self.outcomes for difference in outcome.differences)

    @property
    def sources(self) -> frozenset[str]:
        """Return the UIDs of all policies."""
        return frozenset(outcome.uid for outcome in self.outcomes)


# Marks on native objects: their source policies, their owners, and unique names.


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
_MAX_PREFIX_LENGTH = 40


@dataclass(frozen=True, slots=True, order=True)
class PolicyOwner:
    """A policy as an object of the API server, which owns its native objects."""

    uid: str
    api_version: str
    kind: str
    namespace: str | None
    name: str

    @property
    def reference(self) -> Json:
        """Return the policy as an entry of `ownerReferences`."""
        return {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}

    @property
    def path(self) -> str:
        """Return namespace and name; the name alone if it is cluster-scoped."""
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
    """Return whether Eastgate wrote an object for a policy: its labels name a policy, and its owners agree.

    The owners agree if one of them is the policy of the label, or is in `sources`, the UIDs of existing policies. An
    object with several source policies remains when the policy of its label is deleted.
    """
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping):
        return False
    labels = metadata.get("labels") or {}
    uid = labels.get(SOURCE_UID)
    owners = {str(owner.get("uid")) for owner in metadata.get("ownerReferences") or ()}
    return labels.get(MANAGED_BY) == MANAGER and uid is not None and (uid in owners or not owners.isdisjoint(sources))


def name_of(prefix: str, parts: Sequence[object], taken: Iterable[str] = ()) -> str:
    """Return a name that follows from the content, so that different content gets a different name.

    `taken` are names of objects that Eastgate did not write. The result is none of these.
    """
    used = set(taken)
    short = prefix.replace(".", "-")[:_MAX_PREFIX_LENGTH].strip("-")
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
    """Return an object with the marks of its source policies, and no other labels and annotations.

    The labels and annotations of the policies are not copied, because the mesh might read them, as it reads
    `istio.io/dry-run`.
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
