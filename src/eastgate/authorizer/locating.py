"""Finds where a checked request goes, from what the operator configured down to what the proxy sees of it.

The host is what a client wrote. So it may choose a Gateway only where one alone takes it; and where the request also
came in by the address of a pod, the pod's policies are asked as well as the Gateway's, and both must allow.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.api.questions.ends import Gateway, Pod
from eastgate.authorizer.checks import Check
from eastgate.cluster import Route, World
from eastgate.gateway.attachment import attached_routes, distinct_listeners, is_http
from eastgate.gateway.hostnames import comparable, hostnames_of

__all__ = ["Nowhere", "destinations_of", "port_of"]


class Nowhere(Exception):  # noqa: N818 - says what is known
    """Nobody can tell where a request goes."""


def destinations_of(check: Check, default: str | None, world: World) -> tuple[str, ...]:
    """Return where a request goes, in the words of `--to`: ALL must allow it. Raises Nowhere."""
    if check.to is not None:
        return (check.to,)
    if default is not None:
        return (default,)
    gateways = tuple(_gateways_for(check.host, world))
    if len(gateways) > 1:
        raise Nowhere(f"the Gateways {' and '.join(gateways)} take its host")
    pod = world.by_ip(check.destination[0]) if check.destination is not None else None
    destinations = (*gateways, *([] if pod is None else [Pod(pod.namespace, pod.name)]))
    if not destinations:
        raise Nowhere("no Gateway takes its host, and no pod has the address that it came in by")
    return destinations


def _gateways_for(host: str | None, world: World) -> Iterator[str]:
    """Yield the Gateways that have a route for a host."""
    if host is None:
        return
    names = frozenset(hostnames_of(comparable(host)))
    for gateway in world.gateways.values():
        listeners = [listener for listener in distinct_listeners(gateway) if is_http(listener)]
        for listener in listeners:
            if comparable(listener.hostname) not in names:
                continue
            if any(_takes(route, names) for route in attached_routes(world, gateway, listener)):
                yield Gateway(gateway.namespace, gateway.name)
                break


def _takes(route: Route, names: frozenset[str | None]) -> bool:
    return any(name in names for name in {comparable(hostname) for hostname in route.hostnames} or {None})


def port_of(check: Check, to: str, world: World) -> int | None:
    """Return the port of the destination, where it is known.

    A proxy that stands for a Gateway often listens on another port than the Gateway's; then the port is unknown, and
    every listener counts.
    """
    if check.port is not None or check.destination is None:
        return check.port
    port = check.destination[1]
    kind, _, name = to.partition(":")
    if kind == "pod":
        return port
    gateway = world.gateways.get(name) if kind == "gateway" else None
    is_listener = gateway is not None and any(listener.port == port for listener in gateway.listeners)
    return port if is_listener else None
