"""Linkerd: Servers with the same port, policies that apply to no Server, and references to missing objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from eastgate.cluster import Workload, World
from eastgate.dialects.linkerd import lint_codes as codes
from eastgate.dialects.linkerd.model import AuthorizationPolicy, Server, ServerAuthorization
from eastgate.dialects.linkerd.provenance import INBOUND
from eastgate.dialects.linkerd.stance import injected_ports, ports_named
from eastgate.dialects.linting import Context, Finding, Group, enumerated, locating
from eastgate.dialects.linting.codes import CONTRADICTION, NO_SUCH_TARGET
from eastgate.dialects.linting.context import unexposed_ports
from eastgate.dialects.linting.locating import missing_target, nearest_name, target_span
from eastgate.ir import Layer, PolicyRef


def servers_on(group: Group) -> list[Server]:
    """Return the enforced Servers of a class of workloads. The owner of a port precedes the others."""
    policies = [attachment.policy for attachment in group.attached]
    servers = [policy for policy in policies if isinstance(policy, Server) and not policy.audit]
    return sorted(servers, key=lambda server: (server.created is not None, server.created or "", server.ref.name))


def inbound_layer(layers: Iterable[Layer]) -> Layer | None:
    """Return Linkerd's layer of a workload, or None."""
    return next((layer for layer in layers if layer.at == INBOUND), None)


def ports_of(server: Server, workload: Workload, world: World) -> frozenset[int]:
    """Return the ports of a workload that a Server selects."""
    if isinstance(server.port, int):
        return frozenset({server.port})
    return ports_named(workload, server.port, world)


def _authorization_policies(context: Context) -> Iterator[AuthorizationPolicy]:
    return (policy for policy in context.policies if isinstance(policy, AuthorizationPolicy))


# Servers


def check_overlapping_servers(context: Context) -> Iterator[Finding]:
    """Report two Servers that select one port of one workload."""
    overlaps: dict[tuple[Server, Server, int], list[str]] = {}
    for group in context.workload_groups:
        owners: dict[int, Server] = {}
        for server in servers_on(group):
            for port in sorted(ports_of(server, context.workload(group.first), context.world)):
                owner = owners.setdefault(port, server)
                if owner is not server:
                    overlaps.setdefault((owner, server, port), []).extend(group.members)
    for (owner, server, port), members in overlaps.items():
        message = f"{server.ref} is ignored on port {port} of {enumerated(members)}: {owner.ref} owns it"
        why = "it is older" if owner.created != server.created else "its name comes first"
        help_ = f"{why}; narrow one of the two, or write both as one ({owner.span.location})"
        span = locating.at(server.span, "spec", "port")
        yield Finding(codes.SERVERS_OVERLAP, message, span, help_, (str(server.ref), str(owner.ref), *members))


def check_server_ports(context: Context) -> Iterator[Finding]:
    """Report Servers whose port no selected workload or proxy exposes."""

    def injected(workload: Workload) -> set[int | str]:
        return {part for port in injected_ports(workload, context.world).items() for part in port}

    for server in context.policies:
        if isinstance(server, Server):
            find_span = partial(locating.at, server.span, "spec", "port")
            yield from unexposed_ports(server, [(server.port, find_span)], context, injected)


# Policies on Servers


def check_policy_targets(context: Context) -> Iterator[Finding]:
    """Report missing Servers and routes that an AuthorizationPolicy targets."""
    for policy in _authorization_policies(context):
        target, namespace = policy.target, policy.ref.namespace or ""
        if target.is_workload or target.kind == "Namespace":
            continue
        names = context.names.get((target.group, target.kind, namespace), set())
        if target.name not in names:
            span = target_span(policy, "targetRef", 0, target.name)
            declared = [f"{namespace}/{name}" for name in names]
            yield missing_target(policy, span, target.kind, namespace, target.name, declared)


def check_namespace_policies(context: Context) -> Iterator[Finding]:
    """Report policies on a namespace in which no Server owns a port."""
    with_servers = {server.ref.namespace for group in context.workload_groups for server in servers_on(group)}
    for policy in _authorization_policies(context):
        if policy.target.kind == "Namespace" and policy.ref.namespace not in with_servers:
            message = f"{policy.ref} has no effect: no Server of namespace {policy.ref.namespace} selects a workload"
            help_ = "declare a Server for each of its ports; without one the default policy decides"
            span = locating.at(policy.span, "spec", "targetRef")
            yield Finding(codes.NO_SERVER, message, span, help_, (str(policy.ref),))


def check_server_authorizations(context: Context) -> Iterator[Finding]:
    """Report ServerAuthorizations that select no Server."""
    servers = [policy for policy in context.policies if isinstance(policy, Server)]
    for policy in context.policies:
        if not isinstance(policy, ServerAuthorization):
            continue
        namespace_servers = [server for server in servers if server.ref.namespace == policy.ref.namespace]
        if isinstance(policy.server, str):
            names = {server.ref.name for server in namespace_servers}
            if policy.server not in names:
                close = nearest_name(policy.server, names)
                message = f"{policy.ref} is for Server {policy.server}, which no manifest declares"
                help_ = f"did you mean {close}?" if close else "declare the Server, or name another"
                span = locating.at(policy.span, "spec", "server", "name")
                yield Finding(NO_SUCH_TARGET, message, span, help_, (str(policy.ref),))
        elif not any(policy.server.matches(server.labels) for server in namespace_servers):
            message = f"{policy.ref} selects no Server: none in {policy.ref.namespace} has the labels {policy.server}"
            span = locating.at(policy.span, "spec", "server", "selector")
            yield Finding(
                codes.NO_SERVER, message, span, "give the Server these labels, or name it", (str(policy.ref),)
            )


# Authentications


def check_references(context: Context) -> Iterator[Finding]:
    """Report missing authentications that a policy requires."""
    for policy in _authorization_policies(context):
        for requirement in policy.requirements:
            wanted = requirement.when
            if isinstance(wanted, PolicyRef) and wanted not in context.by_ref:
                names = context.names.get((wanted.group, wanted.kind, wanted.namespace or ""), set())
                close = nearest_name(wanted.name, names)
                elsewhere = next((r for r in context.by_ref if (r.kind, r.name) == (wanted.kind, wanted.name)), None)
                help_ = f"did you mean {close}?" if close else f"declare {wanted.kind} {wanted.namespace}/{wanted.name}"
                if close is None and elsewhere is not None:
                    help_ = f"there is one in another namespace: write namespace: {elsewhere.namespace}"
                span = locating.scalar(policy.span, requirement.span, [wanted.name])
                message = f"{policy.ref} authorizes no client: {wanted} does not exist"
                yield Finding(codes.NO_SUCH_AUTHENTICATION, message, span, help_, (str(policy.ref),))


def check_combined_authentications(context: Context) -> Iterator[Finding]:
    """Report policies whose authentications no caller can meet together."""
    checked: set[PolicyRef] = set()
    for group in context.workload_groups:
        chains = [chain for layer in group.layers for chain in layer.chains]
        for rule in (rule for chain in chains for rule in chain.rules(observed=True)):
            policy = context.policy_of(rule)
            if not isinstance(policy, AuthorizationPolicy) or policy.ref in checked or rule.origin.derived:
                continue
            checked.add(policy.ref)
            if not context.is_possible(rule.when):
                message = f"{policy.ref} authorizes no client: {rule.when} cannot all hold"
                help_ = "write a policy for each of the authentications"
                yield Finding(CONTRADICTION, message, policy.refs_span, help_, (str(policy.ref),))
