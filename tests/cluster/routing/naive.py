"""Routing by brute force: every listener, route, rule and match is tried, and the best one taken.

It follows the text of Gateway API as directly as possible; it shares no code with the real implementation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from eastgate.cluster import Gateway, Listener, Route, RouteMatch, World
from eastgate.ir import Request
from eastgate.ir.attributes import HOST, METHOD, PATH, PORT, SNI, header, query


def means(hostname: str | None, host: str | None) -> bool:
    if hostname is None or host is None:
        return hostname is None
    wanted, given = hostname.split("."), host.split(".")
    if wanted[0] == "*":
        return len(given) >= len(wanted) and given[-len(wanted) + 1 :] == wanted[1:]
    return wanted == given


def how_specific(hostname: str | None) -> tuple[bool, bool, int]:
    return hostname is not None, hostname is not None and "*" not in hostname, len(hostname or "")


def best_listener(listeners: Iterable[Listener], host: str | None) -> Listener | None:
    fitting = [one for one in listeners if means(one.hostname, host)]
    return max(fitting, key=lambda one: how_specific(one.hostname), default=None)


def listener_of(gateway: Gateway, request: Request) -> Listener | None:
    on_port = [one for one in gateway.listeners if one.port == request.get(PORT)]
    secure = [one for one in on_port if one.protocol in ("HTTPS", "TLS")]
    plain = [one for one in on_port if one.protocol == "HTTP"]
    sni: Any = request.get(SNI)
    host: Any = request.get(HOST)
    if plain and (sni is None or not secure):
        return best_listener(plain, host)
    chosen = best_listener([one for one in secure if one.protocol == "HTTPS"], host)
    return chosen if best_listener(secure, sni) is chosen else None


def attached(world: World, gateway: Gateway, listener: Listener, route: Route) -> bool:
    asked = any(
        (parent.namespace, parent.name) == (gateway.namespace, gateway.name)
        and (not parent.section_name or parent.section_name == listener.name)
        and (not parent.port or parent.port == listener.port)
        for parent in route.parents
    )
    origin, selector = listener.allowed_routes.namespaces, listener.allowed_routes.selector
    return asked and (
        origin == "All"
        or (origin == "Same" and route.namespace == gateway.namespace)
        or (origin == "Selector" and selector is not None and selector.matches(world.namespace(route.namespace).labels))
    )


def matches(match: RouteMatch, request: Request) -> bool:
    path: Any = request.get(PATH)
    parts, wanted = [p for p in path.split("/") if p], [p for p in match.path.value.split("/") if p]
    by_path = {
        "Exact": path == match.path.value,
        "PathPrefix": parts[: len(wanted)] == wanted,
        "RegularExpression": re.fullmatch(match.path.value, path) is not None,
    }
    if not by_path[match.path.type] or (match.method and match.method != request.get(METHOD)):
        return False
    asked = [(header(one.name), one) for one in match.headers] + [(query(one.name), one) for one in match.query]
    for attribute, one in asked:
        value: Any = request.get(attribute)
        values = value if isinstance(value, tuple) else [value] if value is not None else []
        if not any(re.fullmatch(one.value, each) if one.regex else one.value == each for each in values):
            return False
    return True


def choose(world: World, gateway: Gateway, request: Request) -> tuple[str, int] | None:
    """The route and the number of the rule that a completely known request takes."""
    listener = listener_of(gateway, request)
    host: Any = request.get(HOST)
    best: tuple[Any, tuple[str, int]] | None = None
    for route in world.routes.values():
        if listener is None or not attached(world, gateway, listener, route):
            continue
        hostnames = [name for name in route.hostnames or (None,) if means(name, host)]
        if not hostnames:
            continue
        for number, rule in enumerate(route.rules):
            for position, match in enumerate(rule.matches):
                if matches(match, request):
                    order = (
                        *(-n for n in max(map(how_specific, hostnames))),
                        ["Exact", "PathPrefix", "RegularExpression"].index(match.path.type),
                        -len(match.path.value.rstrip("/")) if match.path.type == "PathPrefix" else 0,
                        match.method is None,
                        -len(match.headers),
                        -len(match.query),
                        route.created or "9999",
                        f"{route.namespace}/{route.name}",
                        number,
                        position,
                    )
                    if best is None or order < best[0]:
                        best = order, (route.key, number)
    return best[1] if best else None
