"""Finds the policies whose status may change after acknowledgements, or after proxies come or go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from eastgate.authority.authority import Authority, programs_of
from eastgate.cluster.points import NamedPoint
from eastgate.cluster.targets import Everything
from eastgate.control.gateway_nodes import gateway_of
from eastgate.controller.proxies.progress import AppliedPolicy, MeshReport, ProxyReport
from eastgate.dialects import registered
from eastgate.envoy.plan.decisions import policy_name
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import Connection, Resource

# The kinds of other APIs, whose own controllers write the status if they run.


_LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")


async def unwritten_groups(connection: Connection) -> frozenset[str]:
    """Return the groups of kinds whose own controller does not run.

    A running controller has a Lease in some namespace. Raises ApiError, UnreachableError.
    """
    groups: set[str] = set()
    for group, lease in {(kind.group, kind.status_lease) for kind in registered().policies.values()}:
        if lease is not None:
            leases, _ = await connection.list(_LEASES, field_selector=f"metadata.name={lease}")
            groups |= set() if leases else {group}
    return frozenset(groups)


def changed_policies(before: MeshReport, after: MeshReport, authority: Authority) -> set[PolicyRef]:
    """Return the policies whose progress may differ between two reports."""
    nodes = {
        report.node
        for proxy in before.serving.keys() | after.serving.keys()
        if (reports := _reports(before, proxy)) != (later := _reports(after, proxy))
        for report, _ in (*reports, *later)
    }
    names = {
        name
        for replica in {*(each.replica for each in before.replicas), *(each.replica for each in after.replicas)}
        for name in _differing(_policies(before, replica), _policies(after, replica))
    }
    named = {policy.ref for policy in authority.policies if policy_name(policy.ref) in names} if names else set()
    return policies_at(nodes, authority) | named


def _reports(mesh: MeshReport, proxy: str) -> tuple[tuple[ProxyReport, str], ...]:
    """Return the report of a proxy, and the replica that serves it, or nothing."""
    replica = mesh.serving.get(proxy)
    return ((replica.proxies[proxy], replica.replica),) if replica is not None else ()


def _policies(mesh: MeshReport, replica: str) -> Mapping[str, AppliedPolicy]:
    return next((each.policies for each in mesh.replicas if each.replica == replica), {})


def _differing(before: Mapping[str, AppliedPolicy], after: Mapping[str, AppliedPolicy]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def policies_at(nodes: Iterable[str], authority: Authority) -> set[PolicyRef]:
    """Return the policies that the proxies of these nodes may enforce; for a Gateway, all policies of Gateways."""
    world, engine = authority.world, programs_of(authority)
    refs: set[PolicyRef] = set()
    for node in nodes:
        if node in world.workloads:
            refs |= {attachment.policy.ref for attachment in engine.attached(node)}
        elif gateway_of(node, world) is not None:
            refs |= policies_of_gateways(authority)
    return refs


def policies_of_gateways(authority: Authority) -> set[PolicyRef]:
    """Return the policies that may be enforced at a Gateway."""
    return {
        policy.ref
        for policy in authority.policies
        if any(isinstance(target, NamedPoint | Everything) for target in policy.targets)
    }
