"""Linkerd: Servers in each other's way, policies that reach no Server, and references that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.linkerd.injected import ports_named
from eastgate.dialects.linkerd.model import AuthorizationPolicy, Server
from eastgate.lint import codes, locating
from eastgate.lint.ground import Ground, Group, enumerated
from eastgate.lint.model import Finding
from eastgate.lint.nearest import near
from eastgate.policy import PolicyRef
from eastgate.world import Workload

__all__ = ["namespace_policies", "overlapping_servers", "ports_of", "servers_on", "unresolved_references"]


def servers_on(group: Group) -> list[Server]:
    """The enforced Servers of a class of workloads, the one that owns a port before the others."""
    found = [one.policy for one in group.attached if isinstance(one.policy, Server) and not one.policy.audit]
    return sorted(found, key=lambda server: (server.created is not None, server.created or "", server.ref.name))


def ports_of(server: Server, workload: Workload, ground: Ground) -> frozenset[int]:
    """The ports of a workload that a Server means."""
    if isinstance(server.port, int):
        return frozenset({server.port})
    return ports_named(workload, server.port, ground.world)


def overlapping_servers(ground: Ground) -> Iterator[Finding]:
    """Two Servers that mean one port of one workload."""
    found: dict[tuple[Server, Server, int], list[str]] = {}
    for group in ground.workload_groups:
        owners: dict[int, Server] = {}
        for server in servers_on(group):
            for port in sorted(ports_of(server, ground.workload(group.first), ground)):
                owner = owners.setdefault(port, server)
                if owner is not server:
                    found.setdefault((owner, server, port), []).extend(group.members)
    for (owner, server, port), members in found.items():
        message = f"{server.ref} is ignored on port {port} of {enumerated(members)}: {owner.ref} owns it"
        why = "it is older" if owner.created != server.created else "its name comes first"
        help_ = f"{why}; narrow one of the two, or write both as one ({owner.span.file}:{owner.span.line})"
        span = locating.at(server.span, "spec", "port")
        yield Finding(codes.SERVERS_OVERLAP, message, span, help_, (str(server.ref), str(owner.ref), *members))


def namespace_policies(ground: Ground) -> Iterator[Finding]:
    """Policies on a namespace in which no Server owns any port."""
    with_servers = {server.ref.namespace for group in ground.workload_groups for server in servers_on(group)}
    for policy in ground.policies:
        if not isinstance(policy, AuthorizationPolicy) or policy.target.kind != "Namespace":
            continue
        if policy.ref.namespace not in with_servers:
            message = f"{policy.ref} has no effect: no Server of namespace {policy.ref.namespace} selects a workload"
            help_ = "declare a Server for each port that it is about; without one the default policy decides"
            span = locating.at(policy.span, "spec", "targetRef")
            yield Finding(codes.NO_SERVER, message, span, help_, (str(policy.ref),))


def unresolved_references(ground: Ground) -> Iterator[Finding]:
    """Authentications that a policy requires and no manifest declares."""
    for policy in ground.policies:
        if not isinstance(policy, AuthorizationPolicy):
            continue
        for requirement in policy.requirements:
            wanted = requirement.when
            if isinstance(wanted, PolicyRef) and wanted not in ground.by_ref:
                names = ground.names.get((wanted.group, wanted.kind, wanted.namespace or ""), set())
                close = near(wanted.name, names)
                elsewhere = next((r for r in ground.by_ref if (r.kind, r.name) == (wanted.kind, wanted.name)), None)
                help_ = f"did you mean {close}?" if close else f"declare {wanted.kind} {wanted.namespace}/{wanted.name}"
                if close is None and elsewhere is not None:
                    help_ = f"there is one in another namespace: write namespace: {elsewhere.namespace}"
                span = locating.scalar(policy.span, requirement.span, [wanted.name])
                message = f"{policy.ref} authorizes nobody: {wanted} does not exist"
                yield Finding(codes.NO_SUCH_AUTHENTICATION, message, span, help_, (str(policy.ref),))
