"""Routes and Backends without a policy, beside others of the same Gateway that have one."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.authority.questions import Question
from eastgate.cluster import GATEWAY_GROUP, BackendNamed, Gateway, GatewayNamed, Route, RouteNamed
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.cluster.points import NamedPoint
from eastgate.cluster.routing.model import rules_of
from eastgate.cluster.targets import RulesOfGateway, RulesOfRoute, Target
from eastgate.dialects.linting import Finding, codes, enumerated, locating, subject_of
from eastgate.reports.lint.inventory import PolicyInventory


def find_unprotected(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report routes and Backends without any policy on their way, where others of the same Gateway have one."""
    targets = (target for policy in inventory.policies if not policy.audit for target in policy.targets)
    guarded = {_whole(target) for target in targets}
    reported: set[str] = set()
    for gateway in sorted(inventory.world.gateways.values(), key=lambda gateway: gateway.key):
        if GatewayNamed(gateway.namespace, gateway.name) in guarded:
            continue
        routes = _routes(gateway, inventory)
        ways = {route.key: _ways(route) for route in routes}
        if not any(point in guarded for points in ways.values() for way in points for point in way):
            continue  # nobody guards anything here, on purpose or not
        for route in routes:
            open_ways = [way for way in ways[route.key] if not any(point in guarded for point in way)]
            if open_ways and route.key not in reported:
                reported.add(route.key)
                yield _open(route, open_ways, gateway, inventory)


def _whole(target: Target) -> Target:
    """Return the Gateway or the route that a policy on all of its rules, or on some of them, guards."""
    if isinstance(target, RulesOfGateway):
        return target.gateway if target.listener is None else target
    return target.route if isinstance(target, RulesOfRoute) else target


def _routes(gateway: Gateway, inventory: PolicyInventory) -> list[Route]:
    wanted = (GATEWAY_GROUP, "Gateway", gateway.namespace, gateway.name)
    return [
        route
        for _, route in sorted(inventory.world.routes.items())
        if route.kind in ("HTTPRoute", "GRPCRoute")
        and any((ref.group, ref.kind, ref.namespace, ref.name) == wanted for ref in route.parents)
    ]


def _ways(route: Route) -> list[tuple[NamedPoint, ...]]:
    """Return the points that requests pass behind the Gateway: the route, and the Backend if it leads to one."""
    own = RouteNamed(route.namespace, route.name, route.kind)
    backends = [backend for rule in rules_of(route) for backend in rule.backends if not rule.redirects]
    ways: list[tuple[NamedPoint, ...]] = [
        (own, BackendNamed(backend.namespace, backend.name)) if backend.kind in BACKEND_KINDS else (own,)
        for backend in backends
    ]
    return list(dict.fromkeys(ways))


def _open(route: Route, ways: list[tuple[NamedPoint, ...]], gateway: Gateway, inventory: PolicyInventory) -> Finding:
    ends = [way[-1] for way in ways]
    has = "has" if len(ends) == 1 else "have"
    message = (
        f"{enumerated([str(end) for end in ends])} {has} no policy, and others behind Gateway {gateway.key} have one"
    )
    help_ = "target it, or the whole Gateway, with a policy"
    subjects = (route.key, f"Gateway/{gateway.key}", *dict.fromkeys(subject_of(end) for end in ends))
    example = inventory.command(Question.of("anonymous", f"route:{route.namespace}/{route.name}"))
    return Finding(codes.UNPROTECTED, message, locating.name_of(route.span), help_, subjects, example)
