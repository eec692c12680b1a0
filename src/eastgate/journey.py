"""The way of a request through a gateway: the gateway itself, a route, and what the route leads to.

A route may lead to several backends, and with part of the request unknown several routes may be meant. Each is a way of
its own; a question is allowed only if every way is.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.policy import AllowAny, Chain, Layer, Refusal, Request
from eastgate.routing import BackendRef, Routed, possible_routes
from eastgate.world import Gateway, World
from eastgate.world.gateways import BACKEND_KINDS
from eastgate.world.targets import BackendNamed, GatewayNamed

__all__ = ["Way", "through_gateway"]

Way = tuple[str, tuple[str | Layer, ...], str | None]  # how to call it, its points in order, and the backend's key


def through_gateway(gateway: Gateway, request: Request, world: World, *, any_host: bool = False) -> Iterator[Way]:
    """Every way that the request may take, the likeliest first.

    `any_host`: the question is about whichever hosts there are, so that others lead nowhere is not held against it.
    """
    entrance = str(GatewayNamed(gateway.namespace, gateway.name))
    seen: set[tuple[str | Layer, ...]] = set()
    routes = possible_routes(world, gateway, request)
    if any_host and any(routed is not None for routed in routes):
        routes = tuple(routed for routed in routes if routed is not None)
    for routed in routes:
        for where, point, backend in _beyond(routed, world):
            points = (entrance,) if point is None else (entrance, point)
            if (*points, backend or "") not in seen:
                seen.add((*points, backend or ""))
                yield f"gateway {gateway.key}{where}", points, backend


def _beyond(routed: Routed | None, world: World) -> Iterator[tuple[str, str | Layer | None, str | None]]:
    if routed is None:
        yield "", _dead_end("no-route"), None
    elif routed.answered:
        yield "", None, None
    elif not routed.backends:
        yield "", _dead_end("no-backend"), None
    else:
        for ref in routed.backends:
            key = f"{ref.namespace}/{ref.name}"
            yield f" -> {ref.kind} {key}", _point(ref, world), key if ref.kind in BACKEND_KINDS else None


def _point(ref: BackendRef, world: World) -> str | Layer | None:
    if not ref.granted:
        return _dead_end("reference-not-granted")
    if ref.kind not in BACKEND_KINDS:
        return None  # a Service: what guards its pods is a question about them
    if f"{ref.namespace}/{ref.name}" not in world.backends:
        return _dead_end("backend-not-declared")
    return str(BackendNamed(ref.namespace, ref.name))


def _dead_end(why: str) -> Layer:
    """Where the way ends: whatever arrives here is refused."""
    return Layer("gateway/route", Chain((AllowAny(why, (), Refusal.NOT_FOUND),)))
