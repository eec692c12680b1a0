"""The statuses of all policies of a cluster: which of them a change is about, and what they should say.

It is told what changes, in the cluster and at the proxies, and has the writer look at what that may be about. Looking
costs a computation, and a request only where something has to be written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eastgate.authority.authority import Authority, Touched
from eastgate.cluster import ROUTE_KINDS
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.cluster.inventory import Change
from eastgate.cluster.points import NamedPoint
from eastgate.controller.logs import log_recovery, log_trouble
from eastgate.controller.proxies.progress import MeshReport
from eastgate.controller.status.assessment import Assessment, ClusterView, StoredPolicy, assess, kind_of
from eastgate.controller.status.events import EventRecorder
from eastgate.controller.status.marking import changed_policies, policies_at, policies_of_gateways
from eastgate.controller.status.writer import StatusWriter
from eastgate.convert.native import NativePlan
from eastgate.dialects.serving import Status
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import Connection, JsonObject, Resource

_LOG = logging.getLogger(__name__)
_TARGETS = frozenset({"Service", "Gateway", *ROUTE_KINDS, *BACKEND_KINDS})  # objects that a policy names


def keeps_status(resource: Resource) -> bool:
    """Return whether the objects of a kind are policies whose status we write, so that they are needed as they are."""
    return kind_of(PolicyRef(resource.kind, None, "", resource.group)) is not None


class PolicyStatuses:
    """Keeps the statuses of policies right.

    `objects` are the policies as the API server has them, and may change; `find` returns the kind of a policy as it is
    served. All replicas tell it everything; only the leader has `writer` run.
    """

    def __init__(
        self,
        connection: Connection,
        authority: Authority,
        objects: Mapping[PolicyRef, JsonObject],
        find: Callable[[PolicyRef], Resource | None],
        *,
        instance: str,
    ) -> None:
        self.view = ClusterView(authority)
        self._objects = objects
        self._nodes: dict[PolicyRef, frozenset[str]] = {}
        self._at_node: dict[str, set[PolicyRef]] = {}
        self.recorder = EventRecorder(connection, instance)
        self.writer = StatusWriter(
            connection,
            self._assess,
            find,
            recorder=self.recorder,
            on_trouble=lambda ref, error: log_trouble(_LOG, f"the status of {ref}", error, **_fields_of(ref)),
            on_recovery=lambda ref: log_recovery(_LOG, f"the status of {ref}", **_fields_of(ref)),
        )
        self.take_objects(objects)

    # What is told

    def take_objects(self, refs: Iterable[PolicyRef]) -> None:
        """Look at objects of which something has changed, be it only their status, or that are gone."""
        for ref in refs:
            if kind_of(ref) is None:
                continue
            obj = self._objects.get(ref)
            if obj is not None:
                self.writer.observe(obj)
            else:
                self._note_nodes(ref, frozenset())
                self.writer.forget(ref)

    def take_changes(self, refs: Iterable[PolicyRef], touched: Touched) -> None:
        """Look at what a batch of changes is about, once it is applied: its objects, and all that these touch."""
        changed = list(refs)
        self.view.forget()
        self.take_objects(changed)
        authority = self.view.authority
        workloads = {point for point in touched.points if isinstance(point, str)} | touched.change.removed
        dirty = policies_at(workloads, authority) | {ref for key in workloads for ref in self._at_node.get(key, ())}
        if any(isinstance(point, NamedPoint) for point in touched.points):
            dirty |= policies_of_gateways(authority)
        dirty |= self._beside(changed) | self._targeting(touched.change)
        self.writer.mark(ref for ref in dirty if ref in self._objects)

    def take_report(self, report: MeshReport) -> None:
        """Look at the policies of which proxies now report something else."""
        dirty = changed_policies(self.view.report, report, self.view.authority)
        self.view.report = report
        self.writer.mark(ref for ref in dirty if ref in self._objects)

    def take_plan(
        self,
        plan: NativePlan | None,
        written: Mapping[PolicyRef, StoredPolicy] | None = None,
        not_serving: str | None = None,
    ) -> None:
        """Look at the policies that an installed mesh enforces, or did.

        `written` are the policies as they were when the plan was made, without those of which something could not be
        written; None: all of them, as they are. `not_serving` names the control plane of the mesh if it does not serve.
        """
        plans = (self.view.native, plan)
        self.view.native, self.view.written, self.view.not_serving = plan, written, not_serving
        dirty = {outcome.source for each in plans if each is not None for outcome in each.outcomes}
        self.writer.mark(ref for ref in dirty if ref in self._objects)

    def take_settings(self, *, mesh: str | None, shared_groups: frozenset[str]) -> None:
        """Take in the name of the XMesh that is ours, and the groups whose shared status is ours to write."""
        if (self.view.mesh, self.view.shared_groups) != (mesh, shared_groups):
            self.view.mesh, self.view.shared_groups = mesh, shared_groups
            self.writer.mark_all()

    # What it is about

    def _beside(self, refs: Iterable[PolicyRef]) -> set[PolicyRef]:
        """Return the policies that may conflict with changed ones, or depend on them: where not all of them count."""
        homes = {(ref.group, ref.namespace) for ref in refs if not _is_union(ref)}
        return {ref for ref in self._objects if (ref.group, ref.namespace) in homes} if homes else set()

    def _targeting(self, change: Change) -> set[PolicyRef]:
        """Return the policies that may name an object that has come or gone as their target, or refer to it."""
        homes = {changed.namespace for changed in change.objects if changed.kind in _TARGETS}
        if any(changed.kind == "ReferenceGrant" for changed in change.objects):
            return set(self._objects)
        return {ref for ref in self._objects if ref.namespace in homes} if homes else set()

    # What the writer asks

    def _assess(self, ref: PolicyRef) -> Assessment | None:
        obj, policy = self._objects.get(ref), self.view.index.by_ref.get(ref)
        if obj is None or policy is None:
            return None
        assessment = assess(policy, StoredPolicy.of(obj), self.view)
        self._note_nodes(ref, assessment.nodes if assessment is not None else frozenset())
        return assessment

    def _note_nodes(self, ref: PolicyRef, nodes: frozenset[str]) -> None:
        before = self._nodes.pop(ref, frozenset[str]())
        if nodes:
            self._nodes[ref] = nodes
        for node in before - nodes:
            refs = self._at_node[node]
            refs.discard(ref)
            if not refs:
                del self._at_node[node]
        for node in nodes - before:
            self._at_node.setdefault(node, set()).add(ref)

    def to_json(self) -> dict[str, Any]:
        """Return what is known of each policy, for the debug snapshot."""
        return {str(ref): state for ref, state in sorted(self.writer.states.items(), key=lambda item: str(item[0]))}


def _fields_of(ref: PolicyRef) -> dict[str, str]:
    return {"policy": str(ref), **({"namespace": ref.namespace} if ref.namespace is not None else {})}


def _is_union(ref: PolicyRef) -> bool:
    """Return whether all policies of a kind count, so that none of them is another's business."""
    kind = kind_of(ref)
    return kind is not None and kind.status is Status.ANCESTORS
