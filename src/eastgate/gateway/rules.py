"""All rules of routes, each once for every listener that requests come to it by."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import Gateway, World
from eastgate.gateway.hostnames import intersect
from eastgate.gateway.journey import asks_for_gateway, undeclared_gateways
from eastgate.gateway.model import Routed, rules_of
from eastgate.gateway.table import RoutingTable

__all__ = ["every_rule"]


def every_rule(world: World) -> Iterator[Routed]:
    """Yield every rule of every route, once for each listener of each Gateway, declared or not, that leads to it.

    The rules of a route that asks for no Gateway have neither.
    """
    for gateway in world.gateways.values():
        yield from _behind(gateway, world)
    for route in world.routes.values():
        for gateway in undeclared_gateways(route, world):
            yield from _behind(gateway, world)
        if not asks_for_gateway(route):
            yield from (Routed(route, number, (), answered=False) for number in range(len(rules_of(route))))


def _behind(gateway: Gateway, world: World) -> Iterator[Routed]:
    seen = set()
    for group in RoutingTable.of(world, gateway).groups:
        for of_listener, table in group.tables.items():
            meant = (each for name, each in table.candidates.items() if intersect(of_listener, name))
            for routed in (candidate.routed for candidates in meant for candidate in candidates):
                if routed.point not in seen:
                    seen.add(routed.point)
                    yield routed
