"""The hooks of lint for Linkerd's resources. The checks are in the files `lint_*`."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import HttpProbe, Target, Workload
from eastgate.cluster.question import Question
from eastgate.dialects.base import Policy
from eastgate.dialects.linkerd import lint_codes as codes
from eastgate.dialects.linkerd.lint_servers import (
    check_combined_authentications,
    check_namespace_policies,
    check_overlapping_servers,
    check_policy_targets,
    check_references,
    check_server_authorizations,
    check_server_ports,
    inbound_layer,
    ports_of,
    servers_on,
)
from eastgate.dialects.linkerd.lint_spellings import check_spellings
from eastgate.dialects.linkerd.model import (
    INBOUND_KINDS,
    AuthorizationPolicy,
    HttpRoute,
    InboundRoute,
    LinkerdResource,
    MeshTLSAuthentication,
    Protocol,
    Server,
    ServerAuthorization,
    is_server,
)
from eastgate.dialects.linkerd.routes import SUPPORTED_FILTERS, usable_routes
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.dialects.linkerd.stance import DEFAULT_POLICY, probes_with
from eastgate.dialects.linting import (
    Context,
    Fallback,
    Finding,
    Group,
    Linting,
    Naming,
    Statements,
    enumerated,
    locating,
    naming_of,
)
from eastgate.dialects.linting.locating import nearest_name
from eastgate.ir import Known, Layer, PolicyRef, Request
from eastgate.ir.attributes import IDENTITY, MESH_NAME, METHOD, PATH, PORT, SENT_PATH, Attribute
from eastgate.ir.paths import comparable_path

# Linkerd: policies on routes that are attached to no Server, and the reason.


_SERVES = {Protocol.GRPC: "GRPCRoute", Protocol.HTTP_1: "HTTPRoute", Protocol.HTTP_2: "HTTPRoute"}


def check_dropped_routes(context: Context) -> Iterator[Finding]:
    """Report policies whose route exists but is attached to no Server."""
    routes = _routes(context)
    servers: dict[str, list[Server]] = {}
    for server in context.policies:
        if isinstance(server, Server):
            servers.setdefault(server.ref.namespace or "", []).append(server)
    for policy in context.policies:
        if not isinstance(policy, AuthorizationPolicy):
            continue
        namespace, target = policy.ref.namespace or "", policy.target
        namespace_routes = routes.get(namespace, [])
        route = next(
            (r for r in namespace_routes if (r.group, r.kind, r.name) == (target.group, target.kind, target.name)), None
        )
        if route is None:
            continue
        why = _why_unattached(route, namespace_routes, servers.get(namespace, []))
        if why is not None:
            message = f"{policy.ref} has no effect: {route} is not attached because {why}"
            span = locating.at(policy.span, "spec", "targetRef", "name")
            help_ = "correct the route, or target the Server"
            subjects = (str(policy.ref), f"{route.kind}/{route.namespace}/{route.name}")
            yield Finding(codes.ROUTE_NOT_ATTACHED, message, span, help_, subjects)


def _routes(context: Context) -> dict[str, list[InboundRoute]]:
    by_namespace: dict[str, list[InboundRoute]] = {}
    for policy in context.policies:
        if isinstance(policy, HttpRoute):
            by_namespace.setdefault(policy.route.namespace, []).append(policy.route)
    for route in context.world.routes.values():
        if route.kind in INBOUND_KINDS:
            by_namespace.setdefault(route.namespace, []).append(InboundRoute.of(route))
    return by_namespace


def _why_unattached(route: InboundRoute, routes: list[InboundRoute], servers: list[Server]) -> str | None:
    """Describe why a route is attached to no Server; None if nothing prevents it."""
    parents = [parent for parent in route.parents if is_server(parent)]
    if not parents:
        return "none of its parents is a Server"
    by_name = {server.ref.name: server for server in servers}
    for parent in parents:
        server = by_name.get(parent.name)
        if server is not None and route in usable_routes(routes, parent.name, route.kind) and _serves(server, route):
            return None
    return _reason(route, by_name)


def _serves(server: Server, route: InboundRoute) -> bool:
    if server.protocol is Protocol.UNKNOWN:
        return route.kind == "HTTPRoute"
    return _SERVES.get(server.protocol) == route.kind


def _reason(route: InboundRoute, servers: dict[str, Server]) -> str:
    for parent in route.parents:
        if parent.port or parent.section_name:
            return "a parent that is a Server has no port and no sectionName"
        if parent.namespace != route.namespace:
            return f"its Server is in another namespace, {parent.namespace}"
    lists = [*(rule.filters for rule in route.rules), *(rule.filters for rule in route.grpc_rules)]
    unknown = [of.type for filters in lists for of in filters if of.type not in SUPPORTED_FILTERS]
    if unknown:
        return f"Linkerd does not know the filter {unknown[0]} on a Server"
    if any(match.regex for rule in route.grpc_rules for match in rule.matches):
        return "Linkerd does not know a RegularExpression for a gRPC method"
    declared = [parent.name for parent in route.parents if parent.name in servers]
    if not declared:
        return f"no manifest declares Server {route.parents[0].name}"
    server = servers[declared[0]]
    if not _serves(server, route):
        return f"Server {server.ref.name} speaks {server.protocol}, which takes no {route.kind}"
    return f"Server {server.ref.name} has a GRPCRoute, so no HTTPRoute is accepted"


# Linkerd: probes that a proxy denies, pods without a proxy, annotations that a proxy ignores.


_SKIP = "config.linkerd.io/skip-inbound-ports"
_INJECT = "linkerd.io/inject"


def check_probes(context: Context) -> Iterator[Finding]:
    """Report probes that no authorization allows for any address of the kubelet."""
    for group in context.workload_groups:
        layer = inbound_layer(group.layers)
        workload = context.workload(group.first)
        owned = {port for server in servers_on(group) for port in ports_of(server, workload, context.world)}
        if layer is None:
            continue
        for probe in probes_with(workload, owned, context.world):
            values: dict[Attribute, Known] = {IDENTITY: None, MESH_NAME: None, PORT: probe.port, METHOD: "GET"}
            values |= {PATH: comparable_path(probe.path), SENT_PATH: probe.path}
            if not context.can_allow(layer, Request(values)):
                yield _probe_finding(probe, group, context)


def _probe_finding(probe: HttpProbe, group: Group, context: Context) -> Finding:
    workload = context.workload(group.first)
    servers = servers_on(group)
    owner = next((server for server in servers if probe.port in ports_of(server, workload, context.world)), None)
    by = f" by {owner.ref}" if owner is not None else ""
    message = f"the probe GET {probe.path} on port {probe.port} of {group.text} is denied{by}"
    if not probe.rooted:
        help_ = f"write the path with its slash, {probe.path}: Linkerd allows no other probe by itself"
    else:
        help_ = "authorize the addresses of the nodes on a route of its own for the probe (NetworkAuthentication)"
    span = locating.scalar(workload.span, None, [probe.path]) if workload.span is not None else None
    subjects = (*group.members, *((str(owner.ref),) if owner is not None else ()))
    question = Question.of("anonymous", group.destination, port=probe.port, method="GET", path=probe.path)
    return Finding(codes.PROBE_DENIED, message, span, help_, subjects, context.command(question))


def check_annotations(context: Context) -> Iterator[Finding]:
    """Report annotations whose default policy does not exist."""
    holders: list[tuple[str, str | None, Span | None]] = [
        (f"Namespace/{namespace.name}", namespace.annotations.get(DEFAULT_POLICY), namespace.span)
        for namespace in context.world.namespaces.values()
    ]
    workloads = context.world.workloads.values()
    holders += [(workload.key, workload.annotations.get(DEFAULT_POLICY), workload.span) for workload in workloads]
    for key, policy, span in holders:
        if policy is not None and policy not in set(InboundPolicy):
            close = nearest_name(policy, list(InboundPolicy))
            message = f"`{policy}` is no default policy: it is ignored"
            help_ = f"did you mean {close}?" if close else f"write one of {', '.join(InboundPolicy)}"
            yield Finding(codes.DEFAULT_POLICY, message, locating.annotation(span, DEFAULT_POLICY), help_, (key,))


def check_proxies(context: Context) -> Iterator[Finding]:
    """Report policies on pods that have no proxy, or whose proxy is bypassed on the port."""
    for group in context.workload_groups:
        for key in group.members:
            workload = context.workload(key)
            if _annotation(workload, _INJECT, context) == "disabled":
                policies = _policies(group)
                if policies:
                    yield _no_proxy_finding(workload, policies, context)
            elif _SKIP in workload.annotations or _SKIP in context.world.namespace(workload.namespace).annotations:
                yield from _bypass_findings(workload, group, context)


def _policies(group: Group) -> list[Policy]:
    """Return the Servers that select a workload, and the policies that target the workload itself."""
    policies = [attachment.policy for attachment in group.attached if not attachment.policy.audit]
    direct = [policy for policy in policies if isinstance(policy, AuthorizationPolicy) and policy.target.is_workload]
    return [*servers_on(group), *direct]


def _annotation(workload: Workload, name: str, context: Context) -> str | None:
    return workload.annotations.get(name, context.world.namespace(workload.namespace).annotations.get(name))


def _annotation_span(workload: Workload, name: str, context: Context) -> Span | None:
    holder = workload if name in workload.annotations else context.world.namespace(workload.namespace)
    return locating.annotation(holder.span, name)


def _no_proxy_finding(workload: Workload, policies: list[Policy], context: Context) -> Finding:
    names = enumerated([str(policy.ref) for policy in policies])
    message = f"{names} cannot be enforced on {workload.key}: it is not in the mesh"
    help_ = "remove linkerd.io/inject: disabled, or do not select it"
    subjects = (workload.key, *(str(policy.ref) for policy in policies))
    return Finding(codes.NOT_ENFORCED, message, _annotation_span(workload, _INJECT, context), help_, subjects)


def _bypass_findings(workload: Workload, group: Group, context: Context) -> Iterator[Finding]:
    ranges = _ranges(_annotation(workload, _SKIP, context) or "")
    for server in servers_on(group):
        owned = ports_of(server, workload, context.world)
        ports = sorted(port for port in owned if any(first <= port <= last for first, last in ranges))
        if ports:
            listed = ", ".join(str(port) for port in ports)
            message = f"{server.ref} is not enforced on port {listed} of {workload.key}: the proxy is bypassed there"
            help_ = f"take {listed} out of {_SKIP}"
            span = _annotation_span(workload, _SKIP, context)
            yield Finding(codes.NOT_ENFORCED, message, span, help_, (workload.key, str(server.ref)))


def _ranges(text: str) -> list[tuple[int, int]]:
    ranges = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            ranges.append((int(first), int(last or first)))
    return ranges


def _statements(resource: LinkerdResource) -> Statements:
    rules = (resource.rule,) if isinstance(resource, ServerAuthorization) else ()
    targets, field = _targets(resource)
    return Statements(
        rules=rules,
        naming=(*naming_of(rules), *_naming(resource)),
        targets=targets,
        target_field=field,
        allows=False,
        empty_list=None,
    )


def _naming(resource: LinkerdResource) -> Iterator[Naming]:
    match resource:
        case MeshTLSAuthentication():
            yield Naming(resource.who, resource.who_span)
        case AuthorizationPolicy():
            for requirement in resource.requirements:
                if not isinstance(requirement.when, PolicyRef):
                    yield Naming(requirement.when, requirement.span)
        case _:
            pass  # the other kinds name callers in rules, or not at all


def _targets(resource: LinkerdResource) -> tuple[tuple[Target, ...], str]:
    """Return the targets that are workloads, and their field. `check_policy_targets` is for Servers and routes."""
    match resource:
        case Server():
            return resource.targets, "externalWorkloadSelector" if resource.external else "podSelector"
        case AuthorizationPolicy() if resource.target.is_workload:
            return resource.targets, "targetRef"
        case _:
            return (), "targetRef"


def _blames(policy: Policy, _layer: Layer) -> bool:
    """Return whether the policy is a Server.

    Only Servers close ports; the other policies are attached to every pod of their namespace.
    """
    return policy.ref.kind == "Server"


LINTING: Linting[LinkerdResource] = Linting(
    statements=_statements,
    blames=_blames,
    readings=(),
    fallback=Fallback(
        codes.ACCESS_POLICY_WINS,
        lambda fallbacks, policy: f"{fallbacks} of the Server already allows every client that {policy} names",
        "write accessPolicy: deny on the Server, or remove the policy",
    ),
    checks=(
        check_policy_targets,
        check_server_authorizations,
        check_server_ports,
        check_combined_authentications,
        check_overlapping_servers,
        check_namespace_policies,
        check_references,
        check_probes,
        check_annotations,
        check_proxies,
        check_dropped_routes,
        check_spellings,
    ),
    codes=(codes,),
)
