"""The policies that guard the workloads of a local mesh."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.sources.files import points_at_gateways
from eastgate.cluster.points import Direction, NetworkEnd, Point
from eastgate.ir import Is, OneOf
from eastgate.ir.attributes import IDENTITY, MESH_NAME
from eastgate.ir.spiffe import trust_domain_of


def points_at(workload: str) -> tuple[Point, ...]:
    """Return the points whose policies the sidecar of a workload, or its node proxy, enforces, in path order."""
    return (NetworkEnd(workload, Direction.INGRESS), workload)


def policies_at(workload: str, authority: Authority) -> tuple[str, ...]:
    """Return the policies that target a workload, those of the network included."""
    engine = programs_of(authority)
    attached = (attachment for point in points_at(workload) for attachment in engine.attached(point))
    return tuple(sorted(str(attachment.policy.ref) for attachment in attached))


def foreign_domains(authority: Authority, workloads: Iterable[str]) -> set[str]:
    """Return the trust domains, other than the own, that the policies of these workloads name."""
    domains: set[str] = set()
    known = (workload for workload in workloads if workload in authority.world.workloads)
    for point in (*known, *points_at_gateways(authority.world)):
        for layer in programs_of(authority).program(point).layers:
            for atom in (atom for atom in layer.atoms(observed=True) if isinstance(atom, Is)):
                if atom.attribute in (IDENTITY, MESH_NAME) and isinstance(atom.matcher, OneOf):
                    names = (str(value) for value in atom.matcher.values)
                    domains |= {trust_domain_of(name) for name in names if name.startswith("spiffe://")}
    return domains - {authority.settings.trust_domain}
