"""The policies whose status may be another now, after proxies have acknowledged something, or have come or gone."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.api.authority import Authority
from eastgate.cluster.points import NamedPoint
from eastgate.cluster.targets import Everything
from eastgate.controller.proxies.progress import MeshReport
from eastgate.envoy.plan.decisions import policy_name
from eastgate.ir import PolicyRef
from eastgate.mesh.gateways import gateway_of

__all__ = ["changed_policies", "policies_at", "policies_of_gateways"]


def changed_policies(before: MeshReport, after: MeshReport, authority: Authority) -> set[PolicyRef]:
    """Return the policies of which two reports, of one moment and a later one, may tell different things."""
    served = [
        {(report, mesh.serving[proxy].replica) for proxy, report in mesh.proxies.items()} for mesh in (before, after)
    ]
    applied = [
        {(name, policy, replica.replica) for replica in mesh.replicas for name, policy in replica.policies.items()}
        for mesh in (before, after)
    ]
    nodes = {report.node for report, _ in served[0] ^ served[1]}
    names = {name for name, _, _ in applied[0] ^ applied[1]}
    named = {policy.ref for policy in authority.policies if policy_name(policy.ref) in names} if names else set()
    return policies_at(nodes, authority) | named


def policies_at(nodes: Iterable[str], authority: Authority) -> set[PolicyRef]:
    """Return the policies that proxies of some nodes enforce, or would; for a Gateway, all that may be about one."""
    world, engine = authority.world, authority.engine
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
