"""The conditions that Linkerd's resources would show. Linkerd itself writes them on routes only; these say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eastgate.cluster import World
from eastgate.cluster.gateways import ParentRef
from eastgate.dialects.base import Condition
from eastgate.dialects.linkerd.model import (
    GROUP,
    AuthorizationPolicy,
    ClientRequirement,
    HttpRoute,
    LinkerdResource,
    Server,
    ServerAuthorization,
)
from eastgate.ir import PolicyRef
from eastgate.settings import Settings


def conditions(
    policy: LinkerdResource, policies: Sequence[LinkerdResource], _settings: Settings, world: World
) -> list[Condition]:
    """Return whether the target of a resource exists, and whether the authentications that it refers to do."""
    missing = _missing(policy, policies, world)
    if missing is not None:
        reason = "NoMatchingParent" if isinstance(policy, HttpRoute) else "TargetNotFound"
        accepted = Condition("Accepted", "False", reason, missing)
    else:
        message = "it is in audit mode: it is reported and decides nothing" if policy.audit else "it is in order"
        accepted = Condition("Accepted", "True", "Accepted", message)
    return [accepted, *_references(policy, policies)]


def parents(policy: LinkerdResource) -> list[tuple[ParentRef, LinkerdResource]]:
    """Return the parents of a route, each with the route as if it had no other."""
    if not isinstance(policy, HttpRoute):
        return []
    route = policy.route
    return [(parent, replace(policy, route=replace(route, parents=(parent,)))) for parent in route.parents]


def _missing(policy: LinkerdResource, policies: Sequence[LinkerdResource], world: World) -> str | None:
    """Describe the target of a resource that does not exist; None where it exists."""
    servers = [
        resource
        for resource in policies
        if isinstance(resource, Server) and resource.ref.namespace == policy.ref.namespace
    ]
    match policy:
        case Server(targets=targets):
            return None if any(world.select(target) for target in targets) else "no workload matches its selector"
        case ServerAuthorization(server=str(name)):
            return None if _has_server(servers, name) else f"no manifest declares Server {policy.ref.namespace}/{name}"
        case ServerAuthorization(server=selector) if not isinstance(selector, str):
            return (
                None
                if any(selector.matches(server.labels) for server in servers)
                else f"no Server has labels {selector}"
            )
        case HttpRoute(route=route):
            exists = any(_has_server(servers, parent.name) for parent in route.parents)
            return None if exists else "no manifest declares a Server that it is attached to"
        case AuthorizationPolicy():
            return _missing_target(policy, policies, servers, world)
        case _:
            return None


def _has_server(servers: Sequence[Server], name: str) -> bool:
    return any(server.ref.name == name for server in servers)


def _missing_target(
    policy: AuthorizationPolicy, policies: Sequence[LinkerdResource], servers: Sequence[Server], world: World
) -> str | None:
    target, namespace = policy.target, policy.ref.namespace
    if target.is_workload:
        exists = any(world.select(point) for point in policy.targets)
    elif (target.group, target.kind) == (GROUP, "Server"):
        exists = _has_server(servers, target.name)
    elif target.kind == "Namespace":
        exists = True
    elif target.group == GROUP:
        exists = PolicyRef(target.kind, namespace, target.name, GROUP) in {resource.ref for resource in policies}
    else:
        exists = f"{target.kind}/{namespace}/{target.name}" in world.routes
    return None if exists else f"no manifest declares {target.kind} {namespace}/{target.name}"


def _references(policy: LinkerdResource, policies: Sequence[LinkerdResource]) -> Iterator[Condition]:
    if not isinstance(policy, AuthorizationPolicy):
        return
    wanted = [requirement.when for requirement in policy.requirements if _refers(requirement)]
    existing = {resource.ref for resource in policies}
    missing = [str(ref) for ref in wanted if ref not in existing]
    if missing:
        message = f"it refers to {', '.join(missing)}, which does not exist: it lets nobody in"
        yield Condition("ResolvedRefs", "False", "RefNotFound", message)
    elif wanted:
        yield Condition("ResolvedRefs", "True", "ResolvedRefs", "the authentications that it names exist")


def _refers(requirement: ClientRequirement) -> bool:
    return isinstance(requirement.when, PolicyRef)
