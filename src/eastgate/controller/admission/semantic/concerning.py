"""Finds the Invariants that a change is about, at once and without judging the change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

from eastgate.authority.authority import Authority
from eastgate.authority.reading import Manifests
from eastgate.cluster.objects import NAME_LABEL, Namespace
from eastgate.controller.admission.semantic.model import ObjectChange
from eastgate.dialects import Policy, registered
from eastgate.ir import PolicyRef
from eastgate.reports.invariants.objects import InvariantObject

_POD_KINDS = frozenset({"DaemonSet", "Deployment", "Pod", "ReplicaSet", "StatefulSet"})


class Concerns:
    """The Invariants, the labels of namespaces, and the references of policies, for a fast answer.

    An Invariant is about the changes in the namespaces of its destinations. It is about a change elsewhere only if one
    of these is true:

    - the change has no namespace, or names one of those namespaces;
    - a policy in one of those namespaces refers to the changed object;
    - the change is about the connections that pods may open, or about pods whose labels select callers of the
      Invariant.

    Several threads may use it.
    """

    def __init__(self, authority: Authority, invariants: Iterable[InvariantObject]) -> None:
        self._lock = Lock()
        self._roots = registered().root_namespaces(authority.settings)
        self._invariants = {invariant.ref: invariant for invariant in invariants}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._references: dict[PolicyRef, tuple[PolicyRef, ...]] = {}
        self._take(authority.world.objects.values(), authority.policies)

    def update(
        self, put: Manifests, remove: Iterable[PolicyRef], invariants: Mapping[PolicyRef, InvariantObject | None]
    ) -> None:
        """Apply a change that was stored."""
        with self._lock:
            for ref in remove:
                self._references.pop(ref, None)
                if ref.kind == "Namespace":
                    self._labels.pop(ref.name, None)
            self._take(put.objects, put.policies)
            for ref, invariant in invariants.items():
                self._invariants.pop(ref, None)
                if invariant is not None:
                    self._invariants[ref] = invariant

    def _take(self, objects: Iterable[object], policies: Iterable[Policy]) -> None:
        for declared in objects:
            if isinstance(declared, Namespace):
                self._labels[declared.name] = {**declared.labels, NAME_LABEL: declared.name}
        for policy in policies:
            self._references.pop(policy.ref, None)
            if policy.references:
                self._references[policy.ref] = policy.references

    def about(self, change: ObjectChange) -> list[InvariantObject]:
        """Return the Invariants that are about a change."""
        with self._lock:
            home = change.ref.namespace
            if home is None or home in self._roots or _is_about_callers(change):
                return list(self._invariants.values())
            others = {home, *filter(None, _named_namespaces(change.put)), *filter(None, _named_namespaces(change.old))}
            others |= {ref.namespace for ref, refs in self._references.items() if ref.namespace and change.ref in refs}
            has_pods = change.ref.kind in _POD_KINDS
            return [
                each
                for each in self._invariants.values()
                if (has_pods and self._may_call(each, home)) or any(self._has(each, name) for name in others)
            ]

    def _may_call(self, invariant: InvariantObject, namespace: str) -> bool:
        """Return whether an Invariant may select callers among the pods of a namespace by labels."""
        labels = self._labels.get(namespace, {NAME_LABEL: namespace})
        groups = invariant.statement.callers.of, invariant.statement.callers.without
        return any(
            group.pods is not None and (group.namespaces is None or group.namespaces.matches(labels))
            for group in groups
        )

    def _has(self, invariant: InvariantObject, namespace: str) -> bool:
        """Return whether a namespace has destinations of an Invariant, or may have some."""
        destinations = invariant.statement.destinations
        named = (*destinations.services, *destinations.gateways, *destinations.backends)
        if any(name.key.partition("/")[0] == namespace for name in named):
            return True
        labels = self._labels.get(namespace, {NAME_LABEL: namespace})
        return destinations.pods is not None and destinations.namespaces.matches(labels)


def _is_about_callers(change: ObjectChange) -> bool:
    sides = (side for side in (change.put, change.old) if side is not None)
    return any(registered().is_about_callers(change.ref.group, change.ref.kind, side) for side in sides)


def _named_namespaces(value: Any) -> Iterator[str]:
    """Yield every `namespace` that a reference in an object names."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "namespace" and isinstance(inner, str):
                yield inner
            elif key != "metadata":
                yield from _named_namespaces(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named_namespaces(inner)
