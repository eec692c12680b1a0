"""Descriptions of Linkerd's resources."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import Workload
from eastgate.dialects.linkerd.model import (
    AuthorizationPolicy,
    HttpRoute,
    LinkerdResource,
    MeshTLSAuthentication,
    NetworkAuthentication,
    Server,
    ServerAuthorization,
)
from eastgate.dialects.linkerd.modes import modes
from eastgate.dialects.words import NO_ACTION, DescribedRule, DescribedTarget, Words, describe_rule
from eastgate.ir import PolicyRef
from eastgate.settings import Settings


def _action(resource: LinkerdResource) -> str:
    match resource:
        case Server(access=access):
            return str(access)
        case AuthorizationPolicy() | ServerAuthorization():
            return "ALLOW"
        case _:
            return NO_ACTION


def _rules(resource: LinkerdResource) -> Iterator[DescribedRule]:
    match resource:
        case Server(port=port, protocol=protocol, access=access):
            asks = f"port {port}, protocol {protocol}: what nothing authorizes is decided by accessPolicy {access}"
            yield DescribedRule("OWN", (asks,), None, resource.access_span)
        case AuthorizationPolicy(requirements=requirements, origin=origin):
            required = [
                str(requirement.when) if isinstance(requirement.when, PolicyRef) else requirement.when
                for requirement in requirements
            ]
            yield DescribedRule("ALLOW", tuple(required or ["anyone"]), origin, origin.span)
        case ServerAuthorization(rule=rule):
            yield describe_rule("ALLOW", rule)
        case MeshTLSAuthentication(who=who, who_span=span):
            yield DescribedRule("NAME", (who,), None, span)
        case NetworkAuthentication(where=where, where_span=span):
            yield DescribedRule("NAME", (where,), None, span)
        case HttpRoute(route=route):
            yield DescribedRule("ROUTE", (f"{len(route.rules)} rules",), None, resource.span)


def _targets(resource: LinkerdResource) -> list[DescribedTarget] | None:
    """Return the targets that an author writes: Servers and routes, which are points of no workload."""
    match resource:
        case AuthorizationPolicy(target=target, targets=targets):
            return [DescribedTarget(target.kind, target.name, targets[0] if targets else None)]
        case ServerAuthorization(server=server):
            return [DescribedTarget("Server", server)]
        case HttpRoute(route=route):
            return [DescribedTarget(parent.kind, parent.name) for parent in route.parents]
        case _:
            return None


def _is_indirect(resource: LinkerdResource) -> bool:
    """Return whether it targets a Server or a route: attached to all pods of the namespace, it applies to few."""
    return not isinstance(resource, Server) and len(resource.targets) > 1


def _names(resource: LinkerdResource) -> Iterator[PolicyRef]:
    if isinstance(resource, AuthorizationPolicy):
        target = resource.target
        yield PolicyRef(target.kind, resource.ref.namespace, target.name, target.group)


def _why_idle(resource: LinkerdResource, problem: str | None, selects: bool) -> str:
    if problem is not None:
        return problem
    match resource:
        case Server(port=port):
            if not selects:
                return "no workload matches its selector"
            return f"no workload that it selects has port {port}, or an older Server owns it"
        case AuthorizationPolicy(target=target):
            return f"{target.kind} {target.name} governs no port of any workload"
        case ServerAuthorization():
            return "the Servers that it selects own no port of any workload"
        case HttpRoute():
            return "the Servers that it is attached to own no port of any workload, or do not take it"
        case _:
            return "no authorization that is in force refers to it"


def _mesh_name(workload: Workload, settings: Settings) -> str | None:
    """Return Linkerd's name of a workload: that of its account, or for what is no pod that in its certificate."""
    if not workload.is_pod:
        return workload.mesh_name
    return settings.mesh_name(workload.namespace, workload.service_account)


WORDS: Words[LinkerdResource] = Words(
    action=_action,
    level=lambda _resource: "inbound",
    rules=_rules,
    why_idle=_why_idle,
    targets=_targets,
    is_indirect=_is_indirect,
    names=_names,
    modes=modes,
    mesh_name=_mesh_name,
)
