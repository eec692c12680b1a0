"""Data for several checks of network policies: the pods of each policy, and the layers of each pod."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from eastgate.cluster import Workload, World
from eastgate.cluster.points import Direction
from eastgate.dialects.base import Scene
from eastgate.dialects.linting import Context
from eastgate.dialects.network.assemble import ends
from eastgate.dialects.network.model import NetworkPolicy
from eastgate.ir import Attachment, Known, Layer, Request, labels_text
from eastgate.ir.attributes import (
    DESTINATION_ADDRESS,
    DESTINATION_DOMAIN,
    DESTINATION_LABELS,
    DESTINATION_NAMESPACE,
    DESTINATION_NODE,
    PACKET_SOURCE,
    SOURCE_LABELS,
    SOURCE_NAMESPACE,
    VICINITY,
    Attribute,
)


def network_policies(context: Context) -> list[NetworkPolicy]:
    """Return the network policies, in the order of their names."""
    return [policy for policy in context.policies if isinstance(policy, NetworkPolicy)]


class PodClass:
    """Pods that the same network policies select. `layers` has the layer of each direction that has one."""

    def __init__(self, policies: tuple[NetworkPolicy, ...], context: Context) -> None:
        self.policies = policies
        self.members: list[Workload] = []
        self._scene = Scene(context.settings, context.world)

    @cached_property
    def layers(self) -> Mapping[Direction, Layer]:
        attached = [Attachment(policy) for policy in self.policies]
        return {direction: layer for direction in Direction for layer in ends(attached, direction, self._scene)}


class SelectedPods:
    """The pods of a cluster, by the network policies that select them."""

    def __init__(self, context: Context) -> None:
        self.world = context.world
        self.pods = [pod for pod in self.world.workloads.values() if pod.is_pod]
        self.by_policy: dict[NetworkPolicy, list[Workload]] = {}
        selecting: dict[str, list[NetworkPolicy]] = {}
        for policy in network_policies(context):
            keys = sorted({key for target in policy.targets for key in self.world.select(target)})
            self.by_policy[policy] = [self.world.workloads[key] for key in keys]
            for pod in self.by_policy[policy]:
                if not pod.host_network:
                    selecting.setdefault(pod.key, []).append(policy)
        self._context = context
        self._selecting = selecting
        self._opens: dict[tuple[PodClass, Direction, str], bool] = {}
        self._class_of: dict[str, PodClass] = {}
        classes: dict[tuple[NetworkPolicy, ...], PodClass] = {}
        for key, policies in sorted(selecting.items()):
            pod_class = classes.setdefault(tuple(policies), PodClass(tuple(policies), context))
            pod_class.members.append(self.world.workloads[key])
            self._class_of[key] = pod_class
        self.classes = list(classes.values())

    @cached_property
    def labels_in(self) -> Mapping[str, Mapping[str, set[str]]]:
        """Return the labels of the pods in each namespace with pods: the values of each key."""
        labels: dict[str, dict[str, set[str]]] = {}
        for pod in self.pods:
            values = labels.setdefault(pod.namespace, {})
            for key, value in pod.labels.items():
                values.setdefault(key, set()).add(value)
        return labels

    def isolating(self, pod: Workload, direction: Direction) -> list[NetworkPolicy]:
        """Return the policies with rules of a direction that select a pod."""
        return [policy for policy in self._selecting.get(pod.key, ()) if direction in policy.rules]

    def opens(self, pod: Workload, direction: Direction, other: Workload) -> bool:
        """Return whether the policies of a pod may allow a connection to another pod or, for ingress, from it."""
        pod_class = self._class_of.get(pod.key)
        layer = None if pod_class is None else pod_class.layers.get(direction)
        if pod_class is None or layer is None or pod is other:
            return True
        key = pod_class, direction, other.key
        if key not in self._opens:
            self._opens[key] = self._context.can_allow(layer, self._connection_to(other, direction))
        return self._opens[key]

    def _connection_to(self, pod: Workload, direction: Direction) -> Request:
        if direction is Direction.EGRESS:
            return as_destination(pod.namespace, pod.labels, self.world, self.world.address_of(pod))
        return as_source(pod, self.world)


def as_destination(namespace: str, labels: Mapping[str, str], world: World, ip: str | None = None) -> Request:
    """Return a connection to a pod. Its other attributes are unknown."""
    home = labels_text(world.namespace(namespace).labels)
    values: dict[Attribute, Known] = {
        DESTINATION_NAMESPACE: home,
        DESTINATION_LABELS: labels_text(labels),
        DESTINATION_NODE: None,
        DESTINATION_DOMAIN: None,
        VICINITY: None,
    }
    return Request(values if ip is None else {**values, DESTINATION_ADDRESS: ip})


def as_source(pod: Workload, world: World) -> Request:
    """Return a connection from a pod. Its other attributes are unknown."""
    home = labels_text(world.namespace(pod.namespace).labels)
    values: dict[Attribute, Known] = {
        SOURCE_NAMESPACE: home,
        SOURCE_LABELS: labels_text(pod.labels),
        VICINITY: None,
    }
    address = world.address_of(pod)
    return Request(values if address is None else {**values, PACKET_SOURCE: address})
