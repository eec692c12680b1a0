"""The world: all objects, kept up to date one change at a time.

A world changes in place, because the cost of a change must not grow with the number of objects. Each update returns
exactly its difference (`Change`), and the world passes it to its watchers. Only a `LiveWorld` can be changed. A `World`
is for reading, and may be a view of a live one. The mappings that it returns are live views. The answers of a world
depend only on the declared objects, never on the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Self
from weakref import WeakMethod

from eastgate.basics.records import brief
from eastgate.cluster.gateways import (
    GATEWAY_NAME_LABEL,
    Backend,
    Gateway,
    GrantFrom,
    MeshGateway,
    ReferenceGrant,
    Route,
)
from eastgate.cluster.installations import MeshInstallation
from eastgate.cluster.inventory import Change, Inventory
from eastgate.cluster.kinds import WorldObject
from eastgate.cluster.objects import ClusterNode, ConfigMap, Namespace, ObjectId, Service, ServiceAccount
from eastgate.cluster.placement import AssignedAddresses
from eastgate.cluster.pods import Owner, Workload
from eastgate.cluster.secrets import Secret
from eastgate.cluster.targets import (
    BackendNamed,
    Everything,
    ExternalsMatching,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    RouteNamed,
    RulesOfGateway,
    RulesOfRoute,
    Target,
)
from eastgate.ir.labels import Selector


class World:
    """The objects of a cluster, with the lookups of dialects and the engine. It is for reading."""

    __slots__ = ("_has", "_watching")

    def __repr__(self) -> str:
        return brief(self, f"objects={len(self.objects)}")

    def __init__(self) -> None:
        self._has = Inventory()
        self._watching: list[WeakMethod[Callable[[Change], object]]] = []

    @classmethod
    def of(cls, objects: Iterable[WorldObject]) -> Self:
        """Return the world with exactly these declared objects; of two with one name the last counts."""
        world = cls()
        world._has.update({declared.id: declared for declared in objects})
        return world

    def watch(self, tell: Callable[[Change], object]) -> None:
        """Call a method after every change from now on, for as long as its object lives."""
        self._watching.append(WeakMethod(tell))

    @property
    def placement(self) -> AssignedAddresses | None:
        """Return the assigned addresses of workloads; None if manifests declare the addresses."""
        return self._has.placement

    def address_of(self, workload: Workload) -> str | None:
        """Return the address from which a workload calls others; None if it is unknown."""
        placed = self._has.placement.addresses.get(workload.key) if self._has.placement is not None else None
        return next(iter(workload.ips), None) if placed is None else placed

    @property
    def is_local(self) -> bool:
        """Return whether workloads are placed on one machine.

        Such a machine has no network that applies policies to pods: the proxies of the workloads enforce these too.
        """
        return self._has.placement is not None

    @property
    def addresses_prove(self) -> bool:
        """Return whether the address of a placed workload proves the caller."""
        return self._has.placement is not None and self._has.placement.prove

    def placed_at(self, address: str) -> Workload | None:
        """Return the workload that is placed at an address, or None."""
        key = self._has.placement.at(address) if self._has.placement is not None else None
        return self.workloads.get(key) if key is not None else None

    @property
    def objects(self) -> Mapping[ObjectId, WorldObject]:
        """Return all declared objects."""
        return MappingProxyType(self._has.objects)

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """Return the workloads by key."""
        return MappingProxyType(self._has.index.workloads)

    @property
    def meshed(self) -> Collection[str]:
        """Return the keys of the workloads that ask Istio for a proxy by themselves, or have one."""
        return self._has.meshed

    @property
    def meshed_namespaces(self) -> Collection[str]:
        """Return the declared namespaces that ask Istio for the proxies of their pods."""
        return self._has.meshed_namespaces

    @property
    def services(self) -> Mapping[str, Service]:
        """Return the Services by `namespace/name`."""
        return MappingProxyType(self._has.membership.services)

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        """Return the declared namespaces by name. `namespace` also returns undeclared ones."""
        return MappingProxyType(self._has.namespaces)

    @property
    def gateways(self) -> Mapping[str, Gateway]:
        """Return the Gateways by `namespace/name`."""
        return MappingProxyType(self._has.gateways)

    @property
    def mesh_gateways(self) -> Mapping[str, MeshGateway]:
        """Return the Gateways of Istio's own API by `namespace/name`."""
        return MappingProxyType(self._has.mesh_gateways)

    @property
    def installations(self) -> Mapping[ObjectId, MeshInstallation]:
        """Return the installations of Istio."""
        return MappingProxyType(self._has.installations)

    @property
    def backends(self) -> Mapping[str, Backend]:
        """Return the backends by `namespace/name`; of several kinds with one name the first by group, then kind."""
        return MappingProxyType(self._has.backends)

    @property
    def routes(self) -> Mapping[str, Route]:
        """Return the routes by `Kind/namespace/name`."""
        return MappingProxyType(self._has.routes)

    @property
    def service_accounts(self) -> Mapping[str, ServiceAccount]:
        """Return the declared service accounts by `namespace/name`."""
        return MappingProxyType(self._has.service_accounts)

    @property
    def nodes(self) -> Mapping[str, ClusterNode]:
        """Return the declared nodes by name."""
        return MappingProxyType(self._has.nodes)

    @property
    def config_maps(self) -> Mapping[str, ConfigMap]:
        """Return the ConfigMaps by `namespace/name`."""
        return MappingProxyType(self._has.config_maps)

    @property
    def secrets(self) -> Mapping[str, Secret]:
        """Return the Secrets by `namespace/name`."""
        return MappingProxyType(self._has.secrets)

    @property
    def secrets_version(self) -> int:
        """Return a number that changes with each change of a Secret."""
        return self._has.secrets_version

    def namespace(self, name: str) -> Namespace:
        """Return a namespace. An undeclared namespace exists, with only the label of its name."""
        return self._has.namespace(name)

    def namespaces_in_use(self) -> tuple[str, ...]:
        """Return the names of the namespaces that are declared or have workloads, sorted."""
        return tuple(sorted({*self._has.namespaces, *self._has.index.namespaces}))

    def pods_of(self, service_key: str) -> tuple[str, ...]:
        """Return the keys of the workloads behind a Service, sorted."""
        return tuple(sorted(self._has.membership.members(service_key)))

    def services_of(self, workload_key: str) -> tuple[str, ...]:
        """Return the keys of the Services of a workload, sorted."""
        return self._has.membership.services_of(workload_key)

    def select(self, target: Target) -> frozenset[str]:
        """Return the keys of the workloads that a target means."""
        index = self._has.index
        match target:
            case PodsMatching(namespace, selector):
                return index.select(namespace, selector)
            case PodsOfService(namespace, service):
                return frozenset(self._has.membership.members(f"{namespace}/{service}"))
            case PodsAcross(namespaces, pods):
                selected = self._has.namespace_labels.select(namespaces)
                return frozenset().union(*(index.select(name, pods) for name in selected))
            case PodsOwnedBy(namespace, _, name):
                return self._meant(target, self._has.owned(namespace, name))
            case PodsOfAccount(namespace):
                return self._meant(target, (index.workloads[key] for key in index.in_namespace(namespace)))
            case PodNamed(namespace, name):
                return self._meant(target, self.find_workloads(namespace, name))
            case ExternalsMatching(namespace, selector):
                return index.select_externals(namespace, selector)
            case Everything(everywhere):
                return index.in_namespace(everywhere) if everywhere is not None else frozenset(index.workloads)
            case GatewaysMatching() | GatewayNamed() | RouteNamed() | BackendNamed() | HostNamed():
                return frozenset()
            case RulesOfGateway() | RulesOfRoute():
                return frozenset()

    def select_gateways(self, target: GatewaysMatching) -> frozenset[GatewayNamed]:
        """Return the declared Gateways that a target means."""
        return frozenset(
            GatewayNamed(gateway.namespace, gateway.name)
            for gateway in self._has.gateways.values()
            if target.namespace in (None, gateway.namespace)
            and any(map(target.selector.matches, self.gateway_labels(gateway.namespace, gateway.name)))
        )

    def gateway_labels(self, namespace: str, name: str) -> tuple[Mapping[str, str], ...]:
        """Return the labels of the pods of a Gateway: of its declared pods, or else those that its pods would have."""
        named = {GATEWAY_NAME_LABEL: name}
        pods = self._has.index.select(namespace, Selector.of(named))
        if pods:
            return tuple(self._has.index.workloads[key].labels for key in sorted(pods))
        gateway = self._has.gateways.get(f"{namespace}/{name}")
        return ({**gateway.labels, **named} if gateway is not None else named,)

    def target_matches(self, target: Target, workload: Workload) -> bool:
        """Return whether a target means this workload: the same answer as `select`, for one workload."""
        if isinstance(target, Everything):
            return target.namespace in (None, workload.namespace)
        if not workload.is_pod:
            return (
                isinstance(target, ExternalsMatching)
                and workload.namespace == target.namespace
                and target.selector.matches(workload.labels)
            )
        match target:
            case PodsMatching(namespace, selector):
                return workload.namespace == namespace and selector.matches(workload.labels)
            case PodsOfService(namespace, service):
                return f"{namespace}/{service}" in self.services_of(workload.key)
            case PodsAcross(namespaces, pods):
                return pods.matches(workload.labels) and namespaces.matches(self.namespace(workload.namespace).labels)
            case PodsOwnedBy(namespace, kind, name):
                return workload.namespace == namespace and Owner(kind, name) in workload.owners
            case PodsOfAccount(namespace, account):
                return workload.namespace == namespace and workload.service_account == account
            case PodNamed(namespace, name):
                return not workload.derived and (workload.namespace, workload.name) == (namespace, name)
            case ExternalsMatching() | GatewaysMatching() | GatewayNamed() | RouteNamed() | BackendNamed():
                return False
            case RulesOfGateway() | RulesOfRoute() | HostNamed():
                return False

    def _meant(self, target: Target, among: Iterable[Workload]) -> frozenset[str]:
        return frozenset(workload.key for workload in among if self.target_matches(target, workload))

    def find_workloads(self, namespace: str, name: str) -> tuple[Workload, ...]:
        """Return the pod of that name, or else all with an owner of that name, of any kind, sorted by key.

        Without any, return the ExternalWorkload of that name.
        """
        pod = self._has.index.workloads.get(f"{namespace}/{name}")
        if pod is not None and pod.is_pod and not pod.derived:
            return (pod,)
        return self._has.owned(namespace, name) or self._has.external(namespace, name)

    def owned_by(self, kind: str, namespace: str, name: str) -> tuple[Workload, ...]:
        """Return all workloads with the owner of that kind and name, sorted by key."""
        owned = self._has.owned(namespace, name)
        return tuple(workload for workload in owned if (kind, name) in workload.owners)

    def by_ip(self, address: str) -> Workload | None:
        """Return the workload with an address; None if there is none, or if several claim it."""
        return self._has.index.at(address)

    def unknown_endpoints(self, service: str) -> tuple[str, ...]:
        """Return the endpoints of a Service without selector that are no declared pod."""
        return self._has.slices.unknown(service, self._has.index)

    def target_ports(
        self, service: Service, port: int | None, workload: Workload, protocol: str | None = None
    ) -> tuple[int, ...]:
        """Return the ports of a workload behind a port of a Service, or behind all its ports; sorted.

        `protocol`: only the Service's ports of this transport. Usually one port results. Two result if the Service's
        port is both TCP and UDP with different targets. None result if the Service has no such port, or leads to a port
        name that the workload does not declare: then the workload is no endpoint of that port.
        """
        if service.takes_endpoints and service.key in self._has.slices.services:
            return tuple(sorted(self._has.slices.ports(service, port)))
        numbers: set[int] = set()
        for candidate in service.ports:
            if (port is None or candidate.port == port) and protocol in (None, candidate.protocol):
                target = candidate.target
                number = workload.port_named(target, candidate.protocol) if isinstance(target, str) else target
                if number is not None:
                    numbers.add(number)
        return tuple(sorted(numbers))

    def granted(
        self,
        from_group: str,
        from_kind: str,
        from_namespace: str,
        to_group: str,
        to_kind: str,
        to_namespace: str,
        to_name: str,
    ) -> bool:
        """Return whether an object may refer to another: in its own namespace, or by a ReferenceGrant elsewhere."""
        if from_namespace == to_namespace:
            return True
        origin = GrantFrom(from_group, from_kind, from_namespace)
        grants: Iterable[ReferenceGrant] = self._has.grants.get(to_namespace, {}).values()
        return any(grant.allows(origin, to_group, to_kind, to_name) for grant in grants)


class LiveWorld(World):
    """A world that can be changed. It passes each change to the watchers of the world and of its views."""

    __slots__ = ()

    @property
    def view(self) -> World:
        """Return this world, for reading only."""
        view = World()
        view._has, view._watching = self._has, self._watching
        return view

    def put(self, declared: WorldObject) -> Change:
        """Declare an object, in the place of the one with the same id."""
        return self.update(put=(declared,))

    def remove(self, removed: ObjectId) -> Change:
        """Remove an object from the world. An unknown id changes nothing."""
        return self.update(remove=(removed,))

    def update(self, put: Iterable[WorldObject] = (), remove: Iterable[ObjectId] = ()) -> Change:
        """Make several changes at once, and return their difference. An id in both `remove` and `put` is put."""
        wanted: dict[ObjectId, WorldObject | None] = dict.fromkeys(remove)
        wanted.update((declared.id, declared) for declared in put)
        return self._notify_watchers(self._has.update(wanted))

    def assign_addresses(self, addresses: Mapping[str, str], *, prove: bool = False) -> Change:
        """Place these workloads at these addresses, and no others; `prove`: the addresses prove callers."""
        placement = self._has.placement
        if placement is not None and (placement.addresses, placement.prove) == (addresses, prove):
            return Change()
        self._has.placement = AssignedAddresses(dict(addresses), prove)
        return self._notify_watchers(Change(changed=frozenset(self.workloads)))

    def _notify_watchers(self, change: Change) -> Change:
        """Pass a change to all watchers, and return it."""
        if change:
            self._watching[:] = [watcher for watcher in self._watching if watcher() is not None]
            for tell in [watcher() for watcher in self._watching]:
                if tell is not None:
                    tell(change)
        return change
