"""The state of a world, and the single way to change it.

An update declares and withdraws objects. Then it settles, in this order: namespaces, workloads (the slots whose claims
may have changed), Services. Before a workload changes, its old state is noted once; the difference at the end is the
`Change`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeVar

from eastgate.basics.records import dataclass
from eastgate.cluster.externals import ExternalWorkload
from eastgate.cluster.gateways import Backend, Gateway, MeshGateway, ReferenceGrant, Route
from eastgate.cluster.installations import MeshInstallation
from eastgate.cluster.kinds import WorldObject
from eastgate.cluster.membership import Membership
from eastgate.cluster.objects import ClusterNode, ConfigMap, Namespace, ObjectId, Service, ServiceAccount
from eastgate.cluster.ownership import Ownership, Slot
from eastgate.cluster.placement import AssignedAddresses
from eastgate.cluster.pods import Controller, Pod, Workload
from eastgate.cluster.secrets import Secret
from eastgate.cluster.slices import EndpointSlice, Slices
from eastgate.cluster.workload_index import LabelIndex, WorkloadIndex

# The changes of the world by an update: only objects that they touch need a new evaluation.


@dataclass(frozen=True, slots=True)
class Change:
    """The difference that one update made.

    A workload is `changed` if a property changed that a policy can depend on: its labels, annotations, service account
    or name in the mesh, ports, probes, addresses and owners, its Services, and the labels and annotations of its
    namespace. `services` are those that were declared, removed or changed, and those whose pods changed. `objects` are
    the declared objects that are new, gone or different.
    """

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    services: frozenset[str] = frozenset()
    objects: frozenset[ObjectId] = frozenset()

    @property
    def workloads(self) -> frozenset[str]:
        """Return the keys of all workloads that need a new evaluation."""
        return self.added | self.removed | self.changed

    def __or__(self, later: Change) -> Change:
        """Return this change and a later one as one. A workload that came and went may be in several of the sets."""
        return Change(
            self.added | later.added,
            self.removed | later.removed,
            self.changed | later.changed,
            self.services | later.services,
            self.objects | later.objects,
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.services or self.objects)


_K = TypeVar("_K")
_T = TypeVar("_T")


@dataclass(slots=True)
class _Update:
    """The changes so far in one update."""

    objects: set[ObjectId] = field(default_factory=set)  # changed objects
    namespaces: set[str] = field(default_factory=set)  # with changed labels or annotations
    slots: set[Slot] = field(default_factory=set)  # to settle
    services: list[tuple[str, Service | None]] = field(default_factory=list)  # to settle
    services_redeclared: set[str] = field(default_factory=set)
    was: dict[str, tuple[Workload | None, tuple[str, ...]]] = field(default_factory=dict)


class Inventory:
    """The objects of a world, in tables and indexes that are consistent between updates."""

    __slots__ = (
        "_backends",
        "_externals",
        "_installed",
        "_ownership",
        "_seats",
        "backends",
        "config_maps",
        "gateways",
        "grants",
        "index",
        "installations",
        "membership",
        "mesh_gateways",
        "meshed",
        "meshed_namespaces",
        "namespace_labels",
        "namespaces",
        "nodes",
        "objects",
        "placement",
        "routes",
        "secrets",
        "secrets_version",
        "service_accounts",
        "slices",
    )

    def __init__(self) -> None:
        self.objects: dict[ObjectId, WorldObject] = {}
        self.placement: AssignedAddresses | None = None
        self.namespaces: dict[str, Namespace] = {}
        self.gateways: dict[str, Gateway] = {}
        self.mesh_gateways: dict[str, MeshGateway] = {}
        self.installations: dict[ObjectId, MeshInstallation] = {}
        self.routes: dict[str, Route] = {}
        self.backends: dict[str, Backend] = {}
        self.service_accounts: dict[str, ServiceAccount] = {}
        self.nodes: dict[str, ClusterNode] = {}
        self.config_maps: dict[str, ConfigMap] = {}
        self.secrets: dict[str, Secret] = {}
        self.secrets_version = 0
        self.grants: dict[str, dict[str, ReferenceGrant]] = {}  # by namespace, then by name
        self.index = WorkloadIndex()
        self.membership = Membership()
        self.slices = Slices()
        self.meshed: set[str] = set()  # workloads that ask a mesh for a proxy by themselves
        self.meshed_namespaces: set[str] = set()  # namespaces that ask a mesh for the proxies of their pods
        self.namespace_labels = LabelIndex()  # only the namespaces that have workloads
        self._ownership = Ownership()
        self._externals: dict[Slot, ExternalWorkload] = {}
        self._installed: dict[Slot, dict[ObjectId, Workload]] = {}  # gateways, by the installation that makes them
        self._backends: dict[str, dict[ObjectId, Backend]] = {}  # by key: kinds of several groups may share a name
        self._seats: dict[Slot, tuple[Workload, ...]] = {}

    def namespace(self, name: str) -> Namespace:
        """Return a namespace, declared or not."""
        namespace = self.namespaces.get(name)
        return namespace if namespace is not None else Namespace(name)

    def owned(self, namespace: str, name: str) -> tuple[Workload, ...]:
        """Return the workloads with an owner of that name, of any kind, sorted by key."""
        below = self._ownership.slots_below((namespace, name)) | ({(namespace, name)} & self._installed.keys())
        workloads = [
            workload
            for slot in below
            for workload in self._seats.get(slot, ())
            if any(owner.name == name for owner in workload.owners)
        ]
        return tuple(sorted(workloads, key=lambda workload: workload.key))

    def external(self, namespace: str, name: str) -> tuple[Workload, ...]:
        """Return the workload outside of the cluster with this name, or None."""
        return tuple(workload for workload in self._seats.get((namespace, name), ()) if not workload.is_pod)

    def update(self, wanted: Mapping[ObjectId, WorldObject | None]) -> Change:
        """Declare these objects, and withdraw those that are None here."""
        update = _Update()
        for identity, after in wanted.items():
            before = self.objects.get(identity)
            if after is not None:
                if before is not None and before == after and before.span == after.span:
                    continue
                self.objects[identity] = after
                self._declare(after, present=True, update=update)
            elif before is not None:
                del self.objects[identity]
                self._declare(before, present=False, update=update)
            if before != after:
                update.objects.add(identity)
        for slot in sorted(update.slots):
            self._settle_slot(slot, update)
        for key, service in update.services:
            self._settle_service(key, service, update)
        for key in self.slices.services:
            self._settle_slices(key, update)
        return self._difference(update)

    def _settle_slices(self, key: str, update: _Update) -> None:
        """Set the pods of a Service without a selector, from its EndpointSlices."""
        service = self.membership.services.get(key)
        if service is not None and service.takes_endpoints:
            self.membership.lead(key, self.slices.pods(key, self.index), lambda workload: self._note(workload, update))

    def _declare(self, declared: WorldObject, *, present: bool, update: _Update) -> None:
        match declared:
            case Pod() | Controller() | ExternalWorkload():
                update.slots |= self._declare_claim(declared, present=present)
            case Service():
                update.services.append((declared.key, declared if present else None))
            case Namespace():
                self._declare_namespace(declared, present=present, update=update)
            case MeshInstallation():
                update.slots |= self._declare_installation(declared, present=present)
            case Backend():
                self._declare_backend(declared, present=present)
            case EndpointSlice():
                self.slices.keep(declared, present=present)
            case Secret():
                _keep(self.secrets, declared.key, declared, present=present)
                self.secrets_version += 1
            case ReferenceGrant():
                self._declare_grant(declared, present=present)
            case _:
                self._file(declared, present=present)

    def _file(
        self, declared: Gateway | MeshGateway | Route | ServiceAccount | ClusterNode | ConfigMap, *, present: bool
    ) -> None:
        """Keep or drop an object that is looked up only by its name."""
        match declared:
            case MeshGateway():
                _keep(self.mesh_gateways, declared.key, declared, present=present)
            case Gateway():
                _keep(self.gateways, declared.key, declared, present=present)
            case Route():
                _keep(self.routes, declared.key, declared, present=present)
            case ServiceAccount():
                _keep(self.service_accounts, declared.key, declared, present=present)
            case ClusterNode():
                _keep(self.nodes, declared.name, declared, present=present)
            case ConfigMap():
                _keep(self.config_maps, declared.key, declared, present=present)

    def _declare_claim(self, declared: Pod | Controller | ExternalWorkload, *, present: bool) -> set[Slot]:
        """Add or drop an object that becomes workloads; return the slots whose workloads may have changed."""
        slot = (declared.namespace, declared.name)
        match declared:
            case Pod(finished=finished):
                if present and not finished:
                    return self._ownership.declare_pod(declared)
                return self._ownership.withdraw_pod(slot)
            case Controller(kind):
                if present:
                    return self._ownership.declare_controller(declared)
                return self._ownership.withdraw_controller(slot, kind)
            case ExternalWorkload():
                _keep(self._externals, slot, declared, present=present)
                return {slot}

    def _declare_installation(self, declared: MeshInstallation, *, present: bool) -> set[Slot]:
        """Add or drop an installation; return the slots of its gateways, before and after."""
        before = self.installations.get(declared.id)
        gone = {(gateway.namespace, gateway.name) for gateway in before.gateways} if before is not None else set()
        for slot in gone:
            self._installed[slot].pop(declared.id, None)
        _keep(self.installations, declared.id, declared, present=present)
        made = {(gateway.namespace, gateway.name): gateway for gateway in declared.gateways} if present else {}
        for slot, gateway in made.items():
            self._installed.setdefault(slot, {})[declared.id] = gateway
        return gone | made.keys()

    def _declare_grant(self, declared: ReferenceGrant, *, present: bool) -> None:
        grants = self.grants.setdefault(declared.namespace, {})
        _keep(grants, declared.name, declared, present=present)
        if not grants:
            del self.grants[declared.namespace]

    def _declare_backend(self, declared: Backend, *, present: bool) -> None:
        key = declared.key
        bearing = self._backends.setdefault(key, {})
        _keep(bearing, declared.id, declared, present=present)
        if bearing:
            self.backends[key] = bearing[min(bearing)]
        else:
            del self._backends[key], self.backends[key]

    def _declare_namespace(self, declared: Namespace, *, present: bool, update: _Update) -> None:
        name = declared.name
        before = self.namespace(name)
        _keep(self.namespaces, name, declared, present=present)
        after = self.namespace(name)
        (self.meshed_namespaces.add if after.asks_for_mesh else self.meshed_namespaces.discard)(name)
        if before != after:
            update.namespaces.add(name)
            if name in self.namespace_labels:
                self.namespace_labels.discard(name)
                self.namespace_labels.add(name, after.labels)

    def _settle_slot(self, slot: Slot, update: _Update) -> None:
        """Give the keys of a name to the workloads that have it now."""
        leaving = {workload.key: workload for workload in self._seats.get(slot, ())}
        seated = self._claimants(slot)
        if seated:
            self._seats[slot] = seated
        elif leaving:
            del self._seats[slot]
        for workload in seated:
            key = workload.key
            self._note(key, update)
            (self.meshed.add if workload.asks_for_mesh else self.meshed.discard)(key)
            before = leaving.pop(key, None)
            if before is None:
                self.index.add(workload)
                self.membership.enrol(workload)
            else:
                self.index.replace(before, workload)
                if before.labels != workload.labels or before.kind != workload.kind:
                    self.membership.dismiss(key)
                    self.membership.enrol(workload)
        for key, workload in leaving.items():
            self._note(key, update)
            self.index.discard(workload)
            self.membership.dismiss(key)
            self.meshed.discard(key)
        self._settle_namespace(slot[0])

    def _claimants(self, slot: Slot) -> tuple[Workload, ...]:
        """Return the workloads of one name. The first has the plain key; one outside of the cluster comes last."""
        inside = self._ownership.workloads_named(slot)
        made = self._installed.get(slot)
        if made and not inside and not self._ownership.slots_below(slot):
            inside = (made[min(made)],)  # no manifest has its pods
        external = self._externals.get(slot)
        if external is None:
            return inside
        key = f"{slot[0]}/{slot[1]}"
        return (*inside, external.as_workload(f"{key} ({external.kind})" if inside else key))

    def _settle_namespace(self, name: str) -> None:
        used = name in self.index.namespaces
        if used and name not in self.namespace_labels:
            self.namespace_labels.add(name, self.namespace(name).labels)
        elif not used:
            self.namespace_labels.discard(name)

    def _settle_service(self, key: str, service: Service | None, update: _Update) -> None:
        before = self.membership.services.get(key)
        if before != service:
            update.services_redeclared.add(key)

        def note(workload_key: str) -> None:
            self._note(workload_key, update)

        if service is not None:
            self.membership.put(service, self.index, note)
        else:
            self.membership.remove(key, note)

    def _note(self, key: str, update: _Update) -> None:
        """Remember the state of a workload before this update, at the first call for it."""
        if key not in update.was:
            update.was[key] = (self.index.workloads.get(key), self.membership.services_of(key))

    def _difference(self, update: _Update) -> Change:
        added: set[str] = set()
        removed: set[str] = set()
        changed: set[str] = set()
        services = update.services_redeclared
        for key, (workload, behind) in update.was.items():
            workload_now = self.index.workloads.get(key)
            behind_now = self.membership.services_of(key)
            if workload is None:
                if workload_now is not None:
                    added.add(key)
            elif workload_now is None:
                removed.add(key)
            elif workload != workload_now or behind != behind_now:
                changed.add(key)
            if behind != behind_now:
                services |= set(behind) ^ set(behind_now)
        for name in update.namespaces:
            changed |= self.index.in_namespace(name) - added
        return Change(
            added=frozenset(added),
            removed=frozenset(removed),
            changed=frozenset(changed),
            services=frozenset(services),
            objects=frozenset(update.objects),
        )


def _keep(table: dict[_K, _T], key: _K, value: _T, *, present: bool) -> None:
    if present:
        table[key] = value
    else:
        del table[key]
