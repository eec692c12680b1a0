"""Describes what is closed because nobody knows what its policies say, or because a proxy cannot do what is written.

Nothing here closes anything: a policy with errors is a rule that denies everything where it applies.
"""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.authority.authority import Authority
from eastgate.cluster import World
from eastgate.cluster.points import DeadEnd
from eastgate.cluster.routing import ListenerGroup
from eastgate.cluster.targets import GatewayNamed
from eastgate.control.closures import Closure
from eastgate.control.gateway_tls import why_closed
from eastgate.control.gateways import gateway_of
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.envoy.plan import Inexpressible, PortPlan
from eastgate.envoy.plan.decisions import policy_name
from eastgate.envoy.plan.gateway import GatewayPlan


def describe_inexpressible(node: str, plan: PortPlan, refused: Inexpressible) -> Closure:
    """Describe a port that is closed because of what its policies ask for."""
    return Closure(node, plan.port, tuple(sorted(map(policy_name, refused.policies))), f"{refused} [{refused.code.id}]")


def describe_unreadable(node: str, port: int, policies: Sequence[RejectedPolicy]) -> Closure:
    """Describe a port that is closed because policies about it cannot be read."""
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
    """Describe what is closed at a port of a gateway: all of it, or the listeners, routes and backends with a fault."""
    destinations = tuple(plan.every_destination)
    points = dict.fromkeys(point for destination in destinations for point in destination.points)
    rejected = {point: authority.rejected_at([point]) for point in points if not isinstance(point, DeadEnd)}
    faults = {point: policies for point, policies in rejected.items() if policies}
    policies = list({policy.ref: policy for of_point in faults.values() for policy in of_point}.values())
    port = plan.port.port
    if any(isinstance(point, GatewayNamed) for point in faults):
        return describe_unreadable(node, port, policies)
    undone = {
        str(destination.points[1]): f"the gateway cannot do all that is written there: {what}"
        for destination in destinations
        if (what := ", ".join(destination.unsupported))
    } | _closed_listeners(authority.world, plan, group, whole=whole)
    parts = tuple(sorted({*map(str, faults), *undone}))
    reasons = [describe_unreadable(node, port, policies).reason] if policies else []
    names = tuple(sorted(str(policy.ref) for policy in policies))
    return Closure(node, port, names, "; ".join((*reasons, *undone.values())), parts) if parts else None


def _closed_listeners(world: World, plan: GatewayPlan, group: ListenerGroup, *, whole: bool) -> dict[str, str]:
    """Return why listeners take no connections, by their names."""
    gateway = gateway_of(plan.gateway, world)
    if gateway is None:
        return {}
    terminating = [listener for listener in group.listeners if plan.tls and not listener.passes_tls_through]
    reasons = ((listener.name, why_closed(gateway, listener, world, whole=whole)) for listener in terminating)
    return {f"listener {name}": why for name, why in reasons if why is not None}
