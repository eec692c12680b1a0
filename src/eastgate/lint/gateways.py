"""What is behind a Gateway and unguarded beside guarded neighbours; and hosts that no auth scheme is for."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.kuadrant.assemble import in_force
from eastgate.dialects.kuadrant.hosts import ANY, is_inside
from eastgate.lint import codes, locating
from eastgate.lint.ground import Ground, KuadrantPolicy, enumerated, subject_of
from eastgate.lint.model import Finding, command
from eastgate.places import Span
from eastgate.questions import Question
from eastgate.world import GATEWAY_GROUP, BackendNamed, Gateway, GatewayNamed, Route, RouteNamed
from eastgate.world.gateways import BACKEND_KINDS
from eastgate.world.points import NamedPoint

__all__ = ["uncovered_hosts", "unprotected"]


def unprotected(ground: Ground) -> Iterator[Finding]:
    """Routes and Backends without any policy on their way, where others of the same Gateway have one."""
    guarded = {target for policy in ground.policies if not policy.audit for target in policy.targets}
    told: set[str] = set()
    for gateway in sorted(ground.world.gateways.values(), key=lambda one: one.key):
        if GatewayNamed(gateway.namespace, gateway.name) in guarded:
            continue
        routes = _routes(gateway, ground)
        ways = {route.key: _ways(route) for route in routes}
        if not any(point in guarded for points in ways.values() for way in points for point in way):
            continue  # nobody guards anything here, on purpose or not
        for route in routes:
            open_ways = [way for way in ways[route.key] if not any(point in guarded for point in way)]
            if open_ways and route.key not in told:
                told.add(route.key)
                yield _open(route, open_ways, gateway)


def _routes(gateway: Gateway, ground: Ground) -> list[Route]:
    wanted = (GATEWAY_GROUP, "Gateway", gateway.namespace, gateway.name)
    return [
        route
        for _, route in sorted(ground.world.routes.items())
        if route.kind == "HTTPRoute"
        and any((one.group, one.kind, one.namespace, one.name) == wanted for one in route.parents)
    ]


def _ways(route: Route) -> list[tuple[NamedPoint, ...]]:
    """The points that requests pass behind the Gateway: the route, and the Backend if it leads to one."""
    own = RouteNamed(route.namespace, route.name)
    backends = [backend for rule in route.rules for backend in rule.backends if not rule.redirects]
    ways: list[tuple[NamedPoint, ...]] = [
        (own, BackendNamed(one.namespace, one.name)) if one.kind in BACKEND_KINDS else (own,) for one in backends
    ]
    return list(dict.fromkeys(ways))


def _open(route: Route, ways: list[tuple[NamedPoint, ...]], gateway: Gateway) -> Finding:
    ends = [way[-1] for way in ways]
    has = "has" if len(ends) == 1 else "have"
    message = f"{enumerated(list(map(str, ends)))} {has} no policy, and others behind Gateway {gateway.key} have one"
    help_ = "target it, or the whole Gateway, with a policy"
    subjects = (route.key, f"Gateway/{gateway.key}", *dict.fromkeys(subject_of(end) for end in ends))
    example = command(Question("anonymous", f"route:{route.namespace}/{route.name}"))
    return Finding(codes.UNPROTECTED, message, locating.name_of(route.span), help_, subjects, example)


# Hosts


def uncovered_hosts(ground: Ground) -> Iterator[Finding]:
    """Hosts that the rules of an AuthPolicy in force select, and that none of its schemes is for."""
    policies = [policy for policy in ground.policies if isinstance(policy, KuadrantPolicy)]
    for policy in policies:
        if not policy.schemes or in_force(one for one in policies if one.target == policy.target) is not policy:
            continue  # without schemes it has been told while reading
        covered = [host for scheme in policy.schemes for host in scheme.hosts]
        for host, span in _selected(policy, ground):
            if not any(is_inside(host, scheme) for scheme in covered):
                yield _uncovered(policy, host, span, covered)


def _selected(policy: KuadrantPolicy, ground: Ground) -> Iterator[tuple[str, Span]]:
    seen: set[str] = set()
    for rule in policy.rules:
        for host, span in zip(rule.hosts or (), rule.host_spans, strict=True):
            if host not in seen:
                seen.add(host)
                yield host, span
    if not policy.rules or any(rule.hosts is None for rule in policy.rules):
        for host in _hostnames(policy, ground):
            if host not in seen:
                yield host, policy.target_span


def _hostnames(policy: KuadrantPolicy, ground: Ground) -> list[str]:
    key = f"{policy.target.namespace}/{policy.target.name}"
    if isinstance(policy.target, RouteNamed):
        route = ground.world.routes.get(f"HTTPRoute/{key}")
        return [] if route is None else list(route.hostnames) or [ANY]
    gateway = ground.world.gateways.get(key)
    return [] if gateway is None else [listener.hostname or ANY for listener in gateway.listeners]


def _uncovered(policy: KuadrantPolicy, host: str, span: Span, covered: list[str]) -> Finding:
    inside = [one for one in covered if is_inside(one, host)]
    rest = f"beyond {enumerated(inside)} " if inside else ""
    message = f"{policy.ref} selects requests to {host}, and {rest}no auth scheme is for them: they are refused (404)"
    help_ = f"write a scheme with hosts: [{host!r}], or select less"
    example = host.replace("*", "other") if host != ANY else "other.example"
    kind = "route" if isinstance(policy.target, RouteNamed) else "gateway"
    question = Question("anonymous", f"{kind}:{policy.target.namespace}/{policy.target.name}", host=example)
    return Finding(
        codes.HOST_WITHOUT_SCHEME, message, span, help_, (str(policy.ref), subject_of(policy.target)), command(question)
    )
