"""Attachment of routes to listeners: the route asks for it, the listener allows it, and no other kind was first."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator

from eastgate.cluster import GATEWAY_GROUP, ROUTE_KINDS, Gateway, Listener, ParentRef, Route, RoutesFrom, World
from eastgate.cluster.routing.hostnames import comparable, intersect, is_open

_HTTP_KINDS = ("HTTPRoute", "GRPCRoute")
_KINDS = {"HTTP": _HTTP_KINDS, "HTTPS": _HTTP_KINDS, "TLS": ("TLSRoute",)}


class Detachment(enum.Enum):
    """The reason why a listener does not accept a route that refers to it."""

    OTHER_PARENT = enum.auto()
    OTHER_KIND = enum.auto()
    OTHER_NAMESPACE = enum.auto()
    OTHER_HOSTNAME = enum.auto()
    HOSTNAME_TAKEN = enum.auto()
    """An older route of the other kind, HTTPRoute or GRPCRoute, has some of its hostnames."""


def is_http(listener: Listener) -> bool:
    """Return whether the gateway reads HTTP on a listener, and so accepts HTTPRoutes and GRPCRoutes."""
    return listener.protocol.upper() in ("HTTP", "HTTPS")


def is_tls(listener: Listener) -> bool:
    """Return whether the SNI of a TLS handshake chooses the listener."""
    return listener.protocol.upper() in ("HTTPS", "TLS")


def distinct_listeners(gateway: Gateway) -> list[Listener]:
    """Return the HTTP and TLS listeners, except those of equal port, protocol and hostname, which are invalid."""
    able = [listener for listener in gateway.listeners if is_http(listener) or is_tls(listener)]
    alike = Counter(map(_flow, able))
    return [listener for listener in able if alike[_flow(listener)] == 1]


def _flow(listener: Listener) -> tuple[int, bool, str | None]:
    return listener.port, is_tls(listener), comparable(listener.hostname)


def kinds_of(listener: Listener) -> tuple[str, ...]:
    """Return the kinds of routes that a listener accepts: its protocol carries them, and it allows them."""
    return tuple(kind for kind in _KINDS.get(listener.protocol.upper(), ()) if _takes_kind(listener, kind))


def attached_routes(world: World, gateway: Gateway, listener: Listener) -> Iterator[Route]:
    """Yield the routes of a listener, of the kinds that its protocol carries.

    If an HTTPRoute and a GRPCRoute share a hostname here, only the older is accepted. Whether the hostnames of a route
    fit those of the listener is decided for each host.
    """
    kinds = kinds_of(listener)
    asking = [
        route
        for route in world.routes.values()
        if route.kind in kinds
        and any(_means(parent, gateway, listener) for parent in route.parents)
        and _takes_from(listener, gateway.namespace, route.namespace, world)
    ]
    if len({route.kind for route in asking}) < 2:
        yield from asking
        return
    accepted: dict[str, Route] = {}
    for route in sorted(asking, key=seniority):
        others = (other for other in accepted.values() if other.kind != route.kind)
        if not any(_share_hostname(route, other, listener) for other in others):
            accepted[route.key] = route
    yield from (route for route in asking if route.key in accepted)


def why_detached(
    world: World, gateway: Gateway, listener: Listener, route: Route, parent: ParentRef
) -> Detachment | None:
    """Return the reason why a listener does not accept a route by one of its parent references, or None.

    Conflicts with older routes are left out: `attached_routes` finds them for all routes at once.
    """
    if not _means(parent, gateway, listener):
        return Detachment.OTHER_PARENT
    if route.kind not in kinds_of(listener):
        return Detachment.OTHER_KIND
    if not _takes_from(listener, gateway.namespace, route.namespace, world):
        return Detachment.OTHER_NAMESPACE
    return None if share_hostname(route, listener) else Detachment.OTHER_HOSTNAME


def share_hostname(route: Route, listener: Listener) -> bool:
    """Return whether the hostnames of a route and of a listener have, or may have, a host in common."""
    own, names = comparable(listener.hostname), [*map(comparable, route.hostnames or (None,))]
    return is_open(own) or any(is_open(name) or intersect(own, name) for name in names)


def seniority(route: Route) -> tuple[bool, str, str, int]:
    """Return the rank of a route by age. A route that is not yet at the API server is the youngest."""
    name, kind = f"{route.namespace}/{route.name}", ROUTE_KINDS.index(route.kind)
    return route.created is None, route.created or "", name, kind


def _share_hostname(one: Route, other: Route, listener: Listener) -> bool:
    """Return whether the hostnames of both routes have a host of the listener in common."""
    own = comparable(listener.hostname)
    names, others = (
        [name for name in map(comparable, route.hostnames or (None,)) if intersect(name, own)] for route in (one, other)
    )
    return any(intersect(name, other_name) for name in names for other_name in others)


def _means(parent: ParentRef, gateway: Gateway, listener: Listener) -> bool:
    return (
        (parent.group, parent.kind, parent.namespace, parent.name)
        == (GATEWAY_GROUP, "Gateway", gateway.namespace, gateway.name)
        and parent.section_name in (None, listener.name)
        and parent.port in (None, listener.port)
    )


def _takes_kind(listener: Listener, kind: str) -> bool:
    kinds = listener.allowed_routes.kinds
    return not kinds or (GATEWAY_GROUP, kind) in kinds


def _takes_from(listener: Listener, own: str, namespace: str, world: World) -> bool:
    allowed = listener.allowed_routes
    match allowed.namespaces:
        case RoutesFrom.SAME:
            return namespace == own
        case RoutesFrom.ALL:
            return True
        case RoutesFrom.SELECTOR:
            return allowed.selector is not None and allowed.selector.matches(world.namespace(namespace).labels)
