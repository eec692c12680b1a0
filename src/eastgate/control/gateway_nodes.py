"""The proxies of Gateways: their names, and the ports that each can open."""

from __future__ import annotations

from eastgate.authority.questions import ends
from eastgate.cluster import Gateway, World
from eastgate.cluster.routing import ListenerGroup, RoutingTable

_PREFIX = f"{ends.Gateway.kind}:"


def gateway_node(namespace: str, name: str) -> str:
    """Return the name of a gateway's proxy, which is its name in questions."""
    return f"{_PREFIX}{namespace}/{name}"


def gateway_of(node: str, world: World) -> Gateway | None:
    """Return the gateway of a proxy, or None for the proxy of a workload."""
    return world.gateways.get(node.removeprefix(_PREFIX)) if node.startswith(_PREFIX) else None


def ports_of_gateway(world: World, gateway: Gateway) -> dict[int, ListenerGroup]:
    """Return the routes of each port that a gateway can open."""
    by_port: dict[int, ListenerGroup] = {}
    for group in RoutingTable.of(world, gateway).groups:
        by_port.setdefault(group.port, group)
    return by_port
