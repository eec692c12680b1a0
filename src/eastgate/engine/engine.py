"""The engine: programs that follow every change of policies and of the world."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from typing import TypeVar

from eastgate.cluster import (
    GATEWAY_NAME_LABEL,
    ROUTE_KINDS,
    Change,
    Everything,
    ExternalsMatching,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    PodsMatching,
    RouteNamed,
    Selector,
    Workload,
    World,
)
from eastgate.cluster.points import Direction, NamedPoint, Point, RuleNamed
from eastgate.engine.attachment import Targeting
from eastgate.engine.programs import Programs
from eastgate.ir import (
    Attachment,
    Layer,
    PolicyRef,
    Stances,
)

P = TypeVar("P", bound=Targeting)


class Engine(Programs[P]):
    """Decides requests by programs, and forgets the programs that a change touches.

    Layers of any point may depend on objects of `surrounding_kinds`, and on the result of `surroundings`.
    """

    def __init__(
        self,
        world: World,
        policies: Iterable[P],
        assemble: Callable[[Sequence[Attachment[P]], Stances], Sequence[Layer]],
        stances: Callable[[Workload, Sequence[Attachment[P]]], Stances] = lambda _workload, _attached: (),
        on_network: Callable[[P], bool] = lambda _policy: False,
        assemble_end: Callable[
            [Sequence[Attachment[P]], Direction], Sequence[Layer]
        ] = lambda _attached, _direction: (),
        surrounding_kinds: Set[str] = frozenset(),
        surroundings: Callable[[World], Hashable] = lambda _world: None,
    ) -> None:
        super().__init__(world, policies, assemble, stances, on_network, assemble_end)
        self._surrounding_kinds = surrounding_kinds
        self._surroundings_of = surroundings
        self._gateway_pod_keys = self._gateway_pods()
        self._surroundings = surroundings(world)
        self.touched: set[Point] = set()  # since the last clear()
        world.watch(self.world_changed)

    def put_policy(self, policy: P) -> frozenset[Point]:
        """Add or replace a policy, and return the points that it touches."""
        if self._on_network(policy):
            self._network.add(policy.ref)
        else:
            self._network.discard(policy.ref)
        anywhere = self._named_points_of(policy.ref)
        return self._forget(self._attachments.put(policy) | anywhere | self._named_points_of(policy.ref))

    def remove_policy(self, ref: PolicyRef) -> frozenset[Point]:
        """Remove a policy, if it exists, and return the points that it touched."""
        self._network.discard(ref)
        anywhere = self._named_points_of(ref)
        return self._forget(self._attachments.remove(ref) | anywhere)

    def _named_points_of(self, ref: PolicyRef) -> set[Point]:
        """Return the gateways, routes and backends with programs, declared or not, that a policy may target."""
        policy = self._attachments.policies.get(ref)
        if self._attachments.is_about_rules(ref):
            return {point for point in self._other_points if isinstance(point, RuleNamed)}
        if self._attachments.is_about_hosts(ref):
            return {point for point in self._other_points if isinstance(point, HostNamed)}
        if policy is None or not any(isinstance(target, Everything | GatewaysMatching) for target in policy.targets):
            return set()
        return self._named_points()

    def _named_points(self) -> set[Point]:
        return {point for point in self._other_points if isinstance(point, NamedPoint | RuleNamed | HostNamed)}

    def world_changed(self, change: Change) -> frozenset[Point]:
        """Forget the programs that a change of the world touches, and return their points. The world calls this."""
        touched: set[Point] = set(change.workloads)
        for changed in change.objects:
            if changed.kind in ROUTE_KINDS:  # layers of a workload may depend on the routes that lead to it
                touched |= self.world.select(PodsMatching(changed.namespace, Selector.of()))
                touched |= self.world.select(ExternalsMatching(changed.namespace, Selector.of()))
                touched.add(RouteNamed(changed.namespace, changed.name, changed.kind))
            elif changed.kind == "Gateway":  # policies may select its pods by their labels
                touched.add(GatewayNamed(changed.namespace, changed.name))
            elif changed.kind == "Namespace":  # its declaration matters, too
                touched |= self.world.select(Everything(changed.name))
        namespaces = {key.partition("/")[0] for key in change.workloads}
        touched |= {  # policies may select the pods of Gateways
            GatewayNamed(gateway.namespace, gateway.name)
            for gateway in self.world.gateways.values()
            if gateway.namespace in namespaces
        }
        if any(changed.kind == "ReferenceGrant" for changed in change.objects):
            touched |= self._named_points()  # they may refer to authorizers
        for service in change.services:  # its labels may change the path of traffic to its pods
            touched.update(self.world.pods_of(service))
        serves_gateways, surroundings = self._has_gateway_pod_changed(change), self._surroundings
        self._surroundings = self._surroundings_of(self.world)
        is_anywhere = serves_gateways or surroundings != self._surroundings
        if is_anywhere or any(changed.kind in self._surrounding_kinds for changed in change.objects):
            touched |= set(self._programs)
        return self._forget(touched)

    def _has_gateway_pod_changed(self, change: Change) -> bool:
        """Return whether a pod of a Gateway has changed. Destinations may see its identity instead of the caller's."""
        before = self._gateway_pod_keys
        if any(changed.kind == "Gateway" for changed in change.objects):
            self._gateway_pod_keys = self._gateway_pods()
        else:
            now = {key for key in change.workloads if self._is_gateway_pod(self.world.workloads.get(key))}
            self._gateway_pod_keys = (before - change.workloads) | now
        return not change.workloads.isdisjoint(before | self._gateway_pod_keys)

    def _gateway_pods(self) -> set[str]:
        return {key for key, workload in self.world.workloads.items() if self._is_gateway_pod(workload)}

    def _is_gateway_pod(self, workload: Workload | None) -> bool:
        if workload is None or GATEWAY_NAME_LABEL in workload.labels:
            return workload is not None
        selectors = (gateway.selector for gateway in self.world.mesh_gateways.values())
        return any(selector and selector.items() <= workload.labels.items() for selector in selectors)

    def _forget(self, touched: set[Point]) -> frozenset[Point]:
        for point in touched:
            self._programs.pop(point, None)
            self._finders.pop(point, None)
            self._other_points.discard(point)
        self._ends.clear()
        self.touched |= touched
        self.version += 1  # last, so that a reader of the new version never gets an old program
        return frozenset(touched)
