"""Linkerd: policies on routes that are attached to no Server, and why they are not."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.linkerd import lint_codes as codes
from eastgate.dialects.linkerd.model import (
    INBOUND_KINDS,
    AuthorizationPolicy,
    HttpRoute,
    InboundRoute,
    Protocol,
    Server,
    is_server,
)
from eastgate.dialects.linkerd.routes import SUPPORTED_FILTERS, usable_routes
from eastgate.dialects.linting import Context, Finding, locating

_SERVES = {Protocol.GRPC: "GRPCRoute", Protocol.HTTP_1: "HTTPRoute", Protocol.HTTP_2: "HTTPRoute"}


def check_dropped_routes(context: Context) -> Iterator[Finding]:
    """Report policies whose route exists, and is attached to no Server."""
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
            message = f"{policy.ref} has no effect: {route} is not attached, since {why}"
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
    """Describe what keeps a route from being attached to any Server; None where nothing does."""
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
        return f"there is no Server {route.parents[0].name}"
    server = servers[declared[0]]
    if not _serves(server, route):
        return f"Server {server.ref.name} speaks {server.protocol}, which takes no {route.kind}"
    return f"Server {server.ref.name} has a GRPCRoute, beside which no HTTPRoute is accepted"
