"""All rules of routes, each once for every listener that requests come to it by."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import Gateway, World
from eastgate.cluster.routing.attachment import attached_routes, distinct_listeners, share_hostname
from eastgate.cluster.routing.journey import asks_for_gateway, undeclared_gateways
from eastgate.cluster.routing.model import Routed, rules_of
from eastgate.cluster.targets import GatewayNamed


def every_rule(world: World) -> Iterator[Routed]:
    """Yield every rule of every route, once for each listener of each Gateway, declared or not, that leads to it.

    A rule of a route without a Gateway has no gateway and no listener. Backends are left out.
    """
    for gateway in world.gateways.values():
        yield from _behind(gateway, world)
    for route in world.routes.values():
        assumed = (routed for gateway in undeclared_gateways(route, world) for routed in _behind(gateway, world))
        yield from {routed.point: routed for routed in assumed if routed.route is route}.values()
        if not asks_for_gateway(route):
            yield from (Routed(route, number, (), answered=False) for number in range(len(rules_of(route))))


def _behind(gateway: Gateway, world: World) -> Iterator[Routed]:
    named = GatewayNamed(gateway.namespace, gateway.name)
    for listener in distinct_listeners(gateway):
        for route in attached_routes(world, gateway, listener):
            if share_hostname(route, listener):
                for number, rule in enumerate(rules_of(route)):
                    yield Routed(route, number, (), rule.redirects, named, listener.name)
