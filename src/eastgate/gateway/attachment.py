"""Attachment of HTTPRoutes to listeners: the route asks for it, and the listener allows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eastgate.cluster import GATEWAY_GROUP, Gateway, Listener, ParentRef, Route, RoutesFrom, World
from eastgate.gateway.hostnames import comparable

__all__ = ["attached_routes", "distinct_listeners", "is_http", "is_tls"]

_KIND = "HTTPRoute"


def is_http(listener: Listener) -> bool:
    """Return whether the gateway reads HTTP on a listener, and so takes HTTPRoutes."""
    return listener.protocol.upper() in ("HTTP", "HTTPS")


def is_tls(listener: Listener) -> bool:
    """Return whether a listener is chosen by the SNI of a TLS handshake."""
    return listener.protocol.upper() in ("HTTPS", "TLS")


def distinct_listeners(gateway: Gateway) -> list[Listener]:
    """Return the HTTP and TLS listeners, without those that nothing tells apart: a gateway must accept none of such."""
    able = [listener for listener in gateway.listeners if is_http(listener) or is_tls(listener)]
    alike = Counter(map(_flow, able))
    return [listener for listener in able if alike[_flow(listener)] == 1]


def _flow(listener: Listener) -> tuple[int, bool, str | None]:
    return listener.port, is_tls(listener), comparable(listener.hostname)


def attached_routes(world: World, gateway: Gateway, listener: Listener) -> Iterator[Route]:
    """Yield the HTTPRoutes of a listener. That their hostnames fit shows when a host does."""
    if not is_http(listener) or not _takes_http_routes(listener):
        return
    for route in world.routes.values():
        if (
            route.kind == _KIND
            and any(_means(parent, gateway, listener) for parent in route.parents)
            and _takes_from(listener, gateway.namespace, route.namespace, world)
        ):
            yield route


def _means(parent: ParentRef, gateway: Gateway, listener: Listener) -> bool:
    return (
        (parent.group, parent.kind, parent.namespace, parent.name)
        == (GATEWAY_GROUP, "Gateway", gateway.namespace, gateway.name)
        and parent.section_name in (None, listener.name)
        and parent.port in (None, listener.port)
    )


def _takes_http_routes(listener: Listener) -> bool:
    kinds = listener.allowed_routes.kinds
    return not kinds or (GATEWAY_GROUP, _KIND) in kinds


def _takes_from(listener: Listener, own: str, namespace: str, world: World) -> bool:
    allowed = listener.allowed_routes
    match allowed.namespaces:
        case RoutesFrom.SAME:
            return namespace == own
        case RoutesFrom.ALL:
            return True
        case RoutesFrom.SELECTOR:
            return allowed.selector is not None and allowed.selector.matches(world.namespace(namespace).labels)
