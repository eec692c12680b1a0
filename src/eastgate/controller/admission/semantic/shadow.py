"""Shadows of an authority: copies for comparison, so that no change is in force before it is admitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import Manifests, read_plain
from eastgate.cluster import ROUTE_KINDS, Change, Controller, ObjectId, Pod, PodsOwnedBy
from eastgate.cluster.points import Direction
from eastgate.cluster.unread import UnreadObjects
from eastgate.controller.admission.semantic.model import ObjectChange
from eastgate.dialects import Policy
from eastgate.ir import PolicyRef

BINDING = "Binding"
"""The kind that puts a pod on a node: the pod gets its labels and annotations."""

_LOCAL_KINDS = frozenset({*ROUTE_KINDS, "Service"})  # the engine knows the workloads that a change of these touches


def copy_of(authority: Authority) -> Authority:
    """Return an authority with the same objects and policies, in which a policy with errors closes what it targets.

    The copy asks no servers. It shares the objects that were read, so it is cheap.
    """
    documents = {policy: authority.document_of(policy.ref) for policy in authority.policies}
    manifests = Manifests(
        authority.settings,
        objects=list(authority.world.objects.values()),
        policies=list(authority.policies),
        unread=UnreadObjects(list(authority.unread_objects.objects)),
        _documents={policy: document for policy, document in documents.items() if document is not None},
    )
    return Authority(manifests, keys=authority.keys, strict=False, unread=authority.unread)


def _remade(pod: Pod, before: Pod, after: Pod) -> Pod:
    """Return a pod with the changes of its template. Labels and annotations from other sources stay."""

    def changed(own: Mapping[str, str], was: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
        return {key: value for key, value in own.items() if key in now or key not in was} | {
            key: value for key, value in now.items() if was.get(key) != value
        }

    account = after.service_account if after.service_account != before.service_account else pod.service_account
    return replace(
        pod,
        labels=changed(pod.labels, before.labels, after.labels),
        annotations=changed(pod.annotations, before.annotations, after.annotations),
        service_account=account,
    )


class Shadows:
    """Two copies of an authority: `old` has the current state, and `new` has a change during its comparison."""

    def __init__(self, authority: Authority) -> None:
        self.old = copy_of(authority)
        self.new = copy_of(authority)
        self._changes: list[Change] = []
        self.new.world.watch(self._note)

    def _note(self, change: Change) -> None:
        self._changes.append(change)

    @contextmanager
    def changed(self, change: ObjectChange) -> Iterator[frozenset[str] | None]:
        """Apply a change to the new copy during the block; yield the workloads that it may touch, or None for all.

        Raises ManifestError if the object cannot be read.
        """
        self._changes.clear()
        try:
            if change.put is None:
                self.new.update(remove=[change.ref])
            elif change.ref.kind == BINDING:
                self.new.update(list(self._bound(change)))
            else:
                self.new.update(self._with_pods(read_plain([change.put], self.new.settings)))
            yield self._touched(change.ref)
        finally:
            self._restore()

    def _bound(self, change: ObjectChange) -> Iterator[Pod]:
        """Yield the pod of a binding as the binding changes it."""
        pod = self.old.world.objects.get(ObjectId("", "Pod", change.ref.namespace or "", change.ref.name))
        metadata = (change.put or {}).get("metadata") or {}
        if isinstance(pod, Pod):
            labels, annotations = (metadata.get(key) or {} for key in ("labels", "annotations"))
            yield replace(pod, labels={**pod.labels, **labels}, annotations={**pod.annotations, **annotations})

    def _with_pods(self, news: Manifests) -> Manifests:
        """Add the pods of a workload with its new template: the workload will soon replace them, one by one."""
        for maker in [declared for declared in news.objects if isinstance(declared, Controller)]:
            before = self.old.world.objects.get(maker.id)
            if not isinstance(before, Controller) or before.template == maker.template:
                continue
            owned = PodsOwnedBy(maker.namespace, maker.kind, maker.name)
            for key in sorted(self.old.world.select(owned)):
                namespace, _, name = key.partition("/")
                pod = self.old.world.objects.get(ObjectId("", "Pod", namespace, name))
                if isinstance(pod, Pod):
                    news.objects.append(_remade(pod, before.template, maker.template))
        return news

    def follow(self, put: Manifests, remove: list[PolicyRef]) -> None:
        """Apply a change that was stored to both copies. Raises ManifestError."""
        for side in (self.old, self.new):
            side.update(put, remove)

    def _touched(self, ref: PolicyRef) -> frozenset[str] | None:
        if self._changes:
            return self._touched_by_objects()
        sides = programs_of(self.old), programs_of(self.new)
        if not any(ref in engine.network_refs for engine in sides):
            return None  # the comparison finds the touched workloads itself
        policies = [policy for engine in sides for policy in engine.network_policies if policy.ref == ref]
        if any(programs_of(self.new).layers_of(policy, Direction.EGRESS) for policy in policies):
            return None
        return frozenset(point for engine in sides for point in engine.points_of(ref) if isinstance(point, str))

    def _touched_by_objects(self) -> frozenset[str] | None:
        touched: set[str] = set()
        for change in self._changes:
            if not all(name.kind in _LOCAL_KINDS for name in change.objects):
                return None
            touched |= change.workloads
            touched.update(pod for service in change.services for pod in self.old.world.pods_of(service))
            touched.update(point for point in self.new.points_changed(change) if isinstance(point, str))
        return frozenset(touched)

    def _restore(self) -> None:
        """Undo a change in the new copy, and verify that nothing of it is left."""
        self.new.unread_objects = UnreadObjects(list(self.old.unread_objects.objects))
        self.new.warnings.clear()
        policies, objects = self._stale()
        if not policies and not objects:
            return
        documents = {policy: self.old.document_of(policy.ref) for policy in policies.values() if policy is not None}
        restored = Manifests(
            self.old.settings,
            objects=[self.old.world.objects[name] for name in objects if name in self.old.world.objects],
            policies=list(documents),
            _documents={policy: document for policy, document in documents.items() if document is not None},
        )
        gone = [ref for ref, policy in policies.items() if policy is None]
        self.new.update(restored, [*gone, *(name for name in objects if name not in self.old.world.objects)])
        if any(self._stale()):  # for example, one policy caused errors in another
            self.new = copy_of(self.old)
            self.new.world.watch(self._note)

    def _stale(self) -> tuple[dict[PolicyRef, Policy | None], list[ObjectId]]:
        """Return the differences between both copies: policies as they should be, and objects of the world."""
        was = {policy.ref: policy for policy in self.old.policies}
        now = {policy.ref: policy for policy in self.new.policies}
        policies = {ref: was.get(ref) for ref in {**was, **now} if was.get(ref) is not now.get(ref)}
        before, after = self.old.world.objects, self.new.world.objects
        differing = [name for name, declared in before.items() if after.get(name) is not declared]
        return policies, [*differing, *(name for name in after if name not in before)]
