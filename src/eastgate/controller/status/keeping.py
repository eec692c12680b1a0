"""The statuses of all policies of a cluster: finds the policies that a change may affect, and assesses them.

It gets the changes of the cluster and of proxies, and marks the affected policies for the writer. An assessment costs
computation, and a request only if the status differs.
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
_TARGETS = frozenset({"Service", "Gateway", *ROUTE_KINDS, *BACKEND_KINDS})  # kinds of objects that a policy may target


def keeps_status(resource: Resource) -> bool:
    """Return whether Eastgate writes the status of this kind, so that its objects must be kept."""
    return kind_of(PolicyRef(resource.kind, None, "", resource.group)) is not None


class PolicyStatuses:
    """Keeps the statuses of policies up to date.

    `objects` are the policies of the API server, and may change. `find` returns the served resource of a policy. All
    replicas pass every change; only the leader runs `writer`.
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

    # Changes

    def take_objects(self, refs: Iterable[PolicyRef]) -> None:
        """Mark changed or removed objects, also if only their status changed."""
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
        """Mark the policies that an applied batch of changes may affect: its objects, and all that these touch."""
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
        """Mark the policies whose progress differs in a new report."""
        dirty = changed_policies(self.view.report, report, self.view.authority)
        self.view.report = report
        self.writer.mark(ref for ref in dirty if ref in self._objects)

    def take_plan(
        self,
        plan: NativePlan | None,
        written: Mapping[PolicyRef, StoredPolicy] | None = None,
        not_serving: str | None = None,
    ) -> None:
        """Mark the policies that an installed mesh enforces, or did.

        `written` are the policies in the state of the plan, without those that could not be written completely; None:
        all, in their current state. `not_serving` names the control plane of the mesh if it does not serve.
        """
        plans = (self.view.native, plan)
        self.view.native, self.view.written, self.view.not_serving = plan, written, not_serving
        dirty = {outcome.source for each in plans if each is not None for outcome in each.outcomes}
        self.writer.mark(ref for ref in dirty if ref in self._objects)

    def take_settings(self, *, mesh: str | None, shared_groups: frozenset[str]) -> None:
        """Set the name of Eastgate's XMesh, and the groups whose shared status Eastgate writes."""
        if (self.view.mesh, self.view.shared_groups) != (mesh, shared_groups):
            self.view.mesh, self.view.shared_groups = mesh, shared_groups
            self.writer.mark_all()

    # Affected policies

    def _beside(self, refs: Iterable[PolicyRef]) -> set[PolicyRef]:
        """Return the policies that may conflict with the changed ones, or depend on them."""
        homes = {(ref.group, ref.namespace) for ref in refs if not _is_union(ref)}
        return {ref for ref in self._objects if (ref.group, ref.namespace) in homes} if homes else set()

    def _targeting(self, change: Change) -> set[PolicyRef]:
        """Return the policies that may target a new or removed object, or refer to it."""
        homes = {changed.namespace for changed in change.objects if changed.kind in _TARGETS}
        if any(changed.kind == "ReferenceGrant" for changed in change.objects):
            return set(self._objects)
        return {ref for ref in self._objects if ref.namespace in homes} if homes else set()

    # Assessment

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
        """Return the state of each policy, for the debug snapshot."""
        return {str(ref): state for ref, state in sorted(self.writer.states.items(), key=lambda item: str(item[0]))}


def _fields_of(ref: PolicyRef) -> dict[str, str]:
    return {"policy": str(ref), **({"namespace": ref.namespace} if ref.namespace is not None else {})}


def _is_union(ref: PolicyRef) -> bool:
    """Return whether all policies of a kind count together, so that none depends on another."""
    kind = kind_of(ref)
    return kind is not None and kind.status is Status.ANCESTORS
