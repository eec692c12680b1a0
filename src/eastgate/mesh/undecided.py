"""Describes what is closed because nobody knows what its policies say, or because a proxy cannot do what is written.

Nothing here closes anything: a policy with errors is a rule that denies everything where it applies.
"""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.api.authority import Authority
from eastgate.cluster.points import DeadEnd, Point
from eastgate.cluster.targets import GatewayNamed
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.envoy.plan import Inexpressible, PortPlan
from eastgate.envoy.plan.decisions import policy_name
from eastgate.envoy.plan.gateway import Destination, GatewayPlan
from eastgate.mesh.closures import Closure

__all__ = ["describe_gateway_closure", "describe_inexpressible", "describe_unreadable"]


def describe_inexpressible(node: str, plan: PortPlan, refused: Inexpressible) -> Closure:
    """Describe a port that is closed because of what its policies ask for."""
    return Closure(node, plan.port, tuple(sorted(map(policy_name, refused.policies))), f"{refused} [{refused.code.id}]")


def describe_unreadable(
    node: str, port: int, policies: Sequence[RejectedPolicy], parts: tuple[str, ...] = ()
) -> Closure:
    """Describe a port that is closed because policies about it cannot be read."""
    names = tuple(sorted(str(policy.ref) for policy in policies))
    errors = policies[0].errors
    error = f"{errors[0].message} [{errors[0].code.id}]" if errors else "it has errors"
    return Closure(node, port, names, f"a policy that targets it cannot be read: {error}", parts)


def describe_gateway_closure(authority: Authority, node: str, plan: GatewayPlan) -> Closure | None:
    """Describe what is closed at a port of a gateway: all of it, or the routes and backends with a fault."""
    of_streams = (destination for stream in plan.streams for destination in stream.destinations)
    destinations = (*plan.destinations, *of_streams)
    points = dict.fromkeys(point for destination in destinations for point in destination.points)
    rejected = {point: authority.rejected_at([point]) for point in points if not isinstance(point, DeadEnd)}
    faults = {point: policies for point, policies in rejected.items() if policies}
    policies = list({policy.ref: policy for of_point in faults.values() for policy in of_point}.values())
    undone = [destination for destination in destinations if destination.unsupported]
    port = plan.port.port
    if any(isinstance(point, GatewayNamed) for point in faults):
        return describe_unreadable(node, port, policies)
    if policies:
        return describe_unreadable(node, port, policies, _parts((*faults, *_routes(undone))))
    if not undone:
        return None
    what = ", ".join(dict.fromkeys(name for destination in undone for name in destination.unsupported))
    return Closure(node, port, (), f"the gateway cannot do all that is written there: {what}", _parts(_routes(undone)))


def _parts(points: Sequence[Point]) -> tuple[str, ...]:
    return tuple(sorted({str(point) for point in points}))


def _routes(destinations: Sequence[Destination]) -> tuple[Point, ...]:
    return tuple(destination.points[1] for destination in destinations)
