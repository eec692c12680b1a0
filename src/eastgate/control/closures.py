"""Closed ports: ports whose proxy does not have the configuration that it should enforce.

A proxy that rejects an update keeps the old configuration, which may allow more. So a port is closed if a proxy rejects
a part of it, or if a part cannot be sent: a listener that closes every connection replaces its listener. The port opens
again once the proxy has accepted all other parts of it: until then the proxy has the old ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from eastgate.authority.authority import Authority
from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.cluster.points import DeadEnd, Point
from eastgate.cluster.routing import ListenerGroup
from eastgate.cluster.targets import GatewayNamed
from eastgate.control.gateway_nodes import gateway_of
from eastgate.control.gateways import why_closed
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.envoy.config.inbound_port import ANY_PORT, InboundPort
from eastgate.envoy.config.listeners import closing_listener, find_obstacle
from eastgate.envoy.config.rbac import AUDIT, filter_name
from eastgate.envoy.plan import Inexpressible, PortPlan
from eastgate.envoy.plan.decisions import policy_name
from eastgate.envoy.plan.gateway import GatewayPlan
from eastgate.envoy.server.resources import EXTENSION, LISTENER, SECRET, ResourceKey, XdsResource, short_type
from eastgate.envoy.server.status import ResourceRejection, ResourceState, ResourceStatus

TRUST: Final[ResourceKey] = (SECRET, "trust")  # the trust bundles, for all ports of a proxy
# A proxy that rejects one of these may allow more than it should.
_DECIDING: Final = frozenset({LISTENER, EXTENSION, SECRET})
PortKey: TypeAlias = tuple[str, int]  # a proxy and a port


@dataclass(frozen=True, slots=True)
class Closure:
    """A closed port: the reason, and the policies at fault.

    `parts` are the closed routes and backends of a gateway's port, if the rest of the port is open.
    """

    workload: str
    port: int
    policies: tuple[str, ...]
    reason: str
    parts: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        port = f"port {self.port}" if self.port != ANY_PORT else "any other port"
        return ", ".join((f"{self.workload} {port}", *self.parts))

    def covers(self, points: Iterable[Point]) -> bool:
        """Return whether a request that passes these points meets a closed part."""
        return not self.parts or not {str(point) for point in points}.isdisjoint(self.parts)

    def __str__(self) -> str:
        at_fault = f" ({', '.join(self.policies)})" if self.policies else ""
        return f"{self.where} is closed: {self.reason}{at_fault}"


@dataclass(frozen=True, slots=True)
class ClosingResources:
    """The resources that close a port: `listener` replaces the listener that decides connections.

    `outer` is the listener before it. If a proxy rejects even `listener`, `outer` is removed, which no proxy can
    reject. `audit` decides nothing, so a rejection of it does not close the port.
    """

    listener: XdsResource
    outer: ResourceKey
    audit: ResourceKey


def closing_of(inbound: InboundPort) -> ClosingResources:
    """Return the resources that close a port."""
    audit = EXTENSION, filter_name(inbound.name, AUDIT)
    return ClosingResources(closing_listener(inbound), (LISTENER, f"inbound/{inbound.name}"), audit)


class Closures:
    """The closed ports of all proxies, and the resources that their proxies rejected."""

    def __init__(self) -> None:
        self.closed: dict[PortKey, Closure] = {}
        self._rejected: dict[
            str, dict[tuple[ResourceKey, str], ResourceRejection]
        ] = {}  # by version: a rejected version is never sent again
        # By node and port: the resources whose acceptance opens the port; None: none does.
        self._awaited: dict[str, dict[int, frozenset[ResourceKey] | None]] = {}

    def at(self, node: str) -> dict[int, Closure]:
        """Return the closed ports of a proxy."""
        return {port: closure for (own, port), closure in self.closed.items() if own == node}

    def reject(self, node: str, key: ResourceKey, rejection: ResourceRejection) -> None:
        """Record that a proxy rejected a resource."""
        self._rejected.setdefault(node, {})[key, rejection.version] = rejection

    def forget(self, node: str) -> None:
        """Forget a proxy that was removed."""
        self._rejected.pop(node, None)
        self.keep(node, ())

    def keep(self, node: str, ports: Collection[int]) -> None:
        """Forget the ports that a proxy no longer has."""
        kept = {port: awaited for port, awaited in self._awaited.pop(node, {}).items() if port in ports}
        if kept:
            self._awaited[node] = kept
        self.closed = {
            port_key: closure
            for port_key, closure in self.closed.items()
            if port_key[0] != node or port_key[1] in ports
        }

    def forget_accepted(self, node: str, statuses: Iterable[ResourceStatus]) -> bool:
        """Forget the rejections of resources that the proxy has accepted since; return whether there were any."""
        rejected = self._rejected.get(node, {})
        accepted = [
            key
            for status in statuses
            if status.state is ResourceState.ACCEPTED
            and (key := ((status.type_url, status.name), status.wanted or "")) in rejected
        ]
        for key in accepted:
            del rejected[key]
        return bool(accepted)

    def guard(
        self,
        node: str,
        port: int,
        resources: Sequence[XdsResource],
        trust: Iterable[XdsResource],
        closing: ClosingResources,
    ) -> list[XdsResource]:
        """Return the resources that a proxy gets for a port: these, or those that close it."""
        deciding = [
            resource
            for resource in (*resources, *trust)
            if resource.type_url in _DECIDING and resource.key != closing.audit
        ]
        fault = self._fault(node, port, deciding)
        removed = (closing.listener.key, closing.listener.version) in self._rejected.get(node, {})
        if fault is None and (removed or port not in self._awaited.get(node, {})):
            self._awaited.get(node, {}).pop(port, None)
            self.closed.pop((node, port), None)
            return list(resources)
        self.closed[node, port] = fault or Closure(node, port, (), "its proxy has not accepted everything yet")
        awaited = frozenset(resource.key for resource in deciding) - {closing.listener.key}
        self._awaited.setdefault(node, {})[port] = awaited if fault is None else None
        if removed:
            return [resource for resource in resources if resource.key not in (closing.listener.key, closing.outer)]
        sendable = [
            resource
            for resource in resources
            if resource.key != closing.listener.key and find_obstacle(resource) is None
        ]
        return [*sendable, closing.listener]

    def _fault(self, node: str, port: int, resources: Iterable[XdsResource]) -> Closure | None:
        rejected = self._rejected.get(node, {})
        for resource in resources:
            rejection = rejected.get((resource.key, resource.version))
            if rejection is not None:
                reason = f"its proxy rejected the {short_type(resource.type_url)} {resource.name}: {rejection.message}"
                return Closure(node, port, tuple(sorted(rejection.policies)), reason)
            problem = find_obstacle(resource) if resource.policies else None
            if problem is not None:
                return Closure(node, port, tuple(sorted(resource.policies)), problem)
        return None

    def has_closed_ports(self, node: str) -> bool:
        """Return whether a port of this proxy has a closing listener."""
        return node in self._awaited

    def open(self, node: str, states: Mapping[ResourceKey, ResourceState]) -> bool:
        """Open the ports whose other resources the proxy has all accepted; return whether there are any."""
        waiting = self._awaited.get(node, {})
        ready = [
            port
            for port, awaited in waiting.items()
            if awaited is not None and all(states.get(key) is ResourceState.ACCEPTED for key in awaited)
        ]
        for port in ready:
            del waiting[port]
        if not waiting:
            self._awaited.pop(node, None)
        return bool(ready)


# Describes ports that are closed because their policies have errors, or because a proxy cannot enforce them.
#
# Nothing here closes anything: a policy with errors is a rule that denies everything where it applies.


def describe_inexpressible(node: str, plan: PortPlan, refused: Inexpressible) -> Closure:
    """Describe a port that is closed because a proxy cannot express its policies."""
    return Closure(node, plan.port, tuple(sorted(map(policy_name, refused.policies))), f"{refused} [{refused.code.id}]")


def describe_unreadable(node: str, port: int, policies: Sequence[RejectedPolicy]) -> Closure:
    """Describe a port that is closed because its policies cannot be read."""
    names = tuple(sorted(str(policy.ref) for policy in policies))
    errors = policies[0].errors
    error = f"{errors[0].message} [{errors[0].code.id}]" if errors else "it has errors"
    return Closure(node, port, names, f"a policy that targets it cannot be read: {error}")


def describe_gateway_closure(
    authority: Authority,
    node: str,
    plan: GatewayPlan,
    group: ListenerGroup,
    *,
    whole: bool = False,
) -> Closure | None:
    """Describe the closed part of a gateway's port: all of it, or the listeners, routes and backends with a fault."""
    destinations = tuple(plan.every_destination)
    points = dict.fromkeys(point for destination in destinations for point in destination.points)
    rejected = {point: authority.rejected_at([point]) for point in points if not isinstance(point, DeadEnd)}
    faults = {point: policies for point, policies in rejected.items() if policies}
    policies = list({policy.ref: policy for of_point in faults.values() for policy in of_point}.values())
    port = plan.port.port
    if any(isinstance(point, GatewayNamed) for point in faults):
        return describe_unreadable(node, port, policies)
    undone = {
        str(destination.points[1]): f"the gateway does not support: {what}"
        for destination in destinations
        if (what := ", ".join(destination.unsupported))
    } | _closed_listeners(authority.world, plan, group, whole=whole)
    parts = tuple(sorted({*map(str, faults), *undone}))
    reasons = [describe_unreadable(node, port, policies).reason] if policies else []
    names = tuple(sorted(str(policy.ref) for policy in policies))
    return Closure(node, port, names, "; ".join((*reasons, *undone.values())), parts) if parts else None


def _closed_listeners(world: World, plan: GatewayPlan, group: ListenerGroup, *, whole: bool) -> dict[str, str]:
    """Return the reasons for which listeners accept no connections, by listener name."""
    gateway = gateway_of(plan.gateway, world)
    if gateway is None:
        return {}
    terminating = [listener for listener in group.listeners if plan.tls and not listener.passes_tls_through]
    reasons = ((listener.name, why_closed(gateway, listener, world, whole=whole)) for listener in terminating)
    return {f"listener {name}": why for name, why in reasons if why is not None}
