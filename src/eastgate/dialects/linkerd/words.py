"""Descriptions of Linkerd's resources."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from eastgate.cluster import Workload, World
from eastgate.cluster.gateways import ParentRef
from eastgate.dialects.base import Condition
from eastgate.dialects.linkerd.model import (
    GROUP,
    AuthorizationPolicy,
    ClientRequirement,
    HttpRoute,
    LinkerdResource,
    MeshTLSAuthentication,
    NetworkAuthentication,
    Server,
    ServerAuthorization,
)
from eastgate.dialects.linkerd.provenance import InboundScope
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.dialects.linkerd.stance import Stance
from eastgate.dialects.words import (
    NO_ACTION,
    DescribedRule,
    DescribedTarget,
    LayerMode,
    Mode,
    Words,
    describe_rule,
    lets_all_in,
)
from eastgate.ir import Chain, Is, Layer, OneOf, PolicyRef, Predicate, conjuncts
from eastgate.ir.attributes import PORT
from eastgate.settings import Settings

# The conditions of Linkerd's resources. Linkerd itself writes them on routes only; Eastgate shows the same ones for
# all.


def conditions(
    policy: LinkerdResource, policies: Sequence[LinkerdResource], _settings: Settings, world: World
) -> list[Condition]:
    """Return whether the target of a resource exists, and whether its authentications exist."""
    missing = _missing(policy, policies, world)
    if missing is not None:
        reason = "NoMatchingParent" if isinstance(policy, HttpRoute) else "TargetNotFound"
        accepted = Condition("Accepted", "False", reason, missing)
    else:
        message = "it is in audit mode: it is reported and decides nothing" if policy.audit else "it is in order"
        accepted = Condition("Accepted", "True", "Accepted", message)
    return [accepted, *_references(policy, policies)]


def parents(policy: LinkerdResource) -> list[tuple[ParentRef, LinkerdResource]]:
    """Return the parents of a route, each with a copy of the route that has only this parent."""
    if not isinstance(policy, HttpRoute):
        return []
    route = policy.route
    return [(parent, replace(policy, route=replace(route, parents=(parent,)))) for parent in route.parents]


def _missing(policy: LinkerdResource, policies: Sequence[LinkerdResource], world: World) -> str | None:
    """Describe the missing target of a resource; None if it exists."""
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
        message = f"it refers to {', '.join(missing)}, which does not exist: it authorizes no client"
        yield Condition("ResolvedRefs", "False", "RefNotFound", message)
    elif wanted:
        yield Condition("ResolvedRefs", "True", "ResolvedRefs", "the authentications that it names exist")


def _refers(requirement: ClientRequirement) -> bool:
    return isinstance(requirement.when, PolicyRef)


# The modes of a workload's ports in Linkerd: one for each Server that owns ports, and one for the default policy.


def modes(layer: Layer, _resources: Sequence[LinkerdResource], stance: Hashable) -> list[LayerMode]:
    """Return one mode for each port that a Server owns, and one for the default policy."""
    ports: dict[InboundScope, set[int]] = {}
    chains: dict[InboundScope, Chain] = {}
    for case in layer.cases:
        scope = case.chain.scope
        if isinstance(scope, InboundScope) and scope.server is not None:
            ports.setdefault(scope.port, set()).update(_ports(case.when))
            chains.setdefault(scope.port, case.chain)
    owned = []
    for port, numbers in ports.items():
        listed = ", ".join(map(str, sorted(numbers)))
        mode = Mode.OPEN if lets_all_in(chains[port]) else Mode.ALLOW_LIST
        owned.append(LayerMode(layer.at, mode, f"owned by {port}", port.refs, f"port {listed}"))
    if not isinstance(stance, Stance):
        return owned
    default, others = stance.default, "any other port" if owned else "any port"
    open_or_not = Mode.OPEN if lets_all_in(layer.otherwise) else Mode.ALLOW_LIST
    mode = Mode.CLOSED if default.policy is InboundPolicy.DENY else open_or_not
    why = f"default policy {default.policy}, from {default.source}"
    return [*owned, LayerMode(layer.at, mode, why, (), others)]


def _ports(when: Predicate) -> Iterable[int]:
    for part in conjuncts(when):
        if isinstance(part, Is) and part.attribute == PORT and isinstance(part.matcher, OneOf):
            yield from (port for port in part.matcher.values if isinstance(port, int))


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
            asks = f"port {port}, protocol {protocol}: accessPolicy {access} decides unauthorized requests"
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
    """Return the targets that an author writes: Servers and routes, which are not points of a workload."""
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
    """Return whether the resource targets a Server or a route.

    It is attached to all pods of the namespace, and applies to some.
    """
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
    """Return Linkerd's name of a workload: that of its account, or that in the certificate of an external workload."""
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
