"""Gateways, routes and requests in a line each, and routes by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eastgate.cluster import (
    Gateway,
    Listener,
    ParentRef,
    PathMatch,
    PathType,
    Redirect,
    Route,
    RouteBackend,
    RouteMatch,
    RouteRule,
    ValueMatch,
    World,
    WorldObject,
)
from eastgate.cluster.routing import Routed, RoutingTable
from eastgate.ir import Known, Request
from eastgate.ir.attributes import HOST, METHOD, PATH, PORT, SNI, Attribute, header, query

HTTP = Listener("http", 80, "HTTP")
GATEWAY = Gateway("edge", "gw", (HTTP,))


def gateway(*listeners: Listener) -> Gateway:
    return Gateway("edge", "gw", listeners)


def https(name: str, hostname: str | None = None, port: int = 443, protocol: str = "HTTPS") -> Listener:
    return Listener(name, port, protocol, hostname)


def match(written: str = "", **headers: str) -> RouteMatch:
    """A match in a line: `GET =/exact`, `/prefix`, `~regex`, with `?a=1` for query parameters."""
    method, path, queries = None, PathMatch(), []
    for word in written.split():
        if word.startswith("="):
            path = PathMatch(PathType.EXACT, word[1:])
        elif word.startswith("~"):
            path = PathMatch(PathType.REGEX, word[1:])
        elif word.startswith("/"):
            path = PathMatch(PathType.PREFIX, word)
        elif word.startswith("?"):
            name, _, value = word[1:].partition("=")
            queries.append(ValueMatch(name, value))
        else:
            method = word
    found = tuple(
        ValueMatch(name.replace("_", "-"), value.removeprefix("~"), value.startswith("~"))
        for name, value in headers.items()
    )
    return RouteMatch(path, method, found, tuple(queries))


def rule(*matches: RouteMatch | str, to: str = "web", redirects: bool = False) -> RouteRule:
    found = tuple(match(one) if isinstance(one, str) else one for one in matches)
    backends = () if redirects else (RouteBackend("edge", to, port=80),)
    return RouteRule(found or (RouteMatch(),), backends, (Redirect(),) if redirects else ())


def route(
    name: str, *rules: RouteRule | str, hosts: Iterable[str] = (), namespace: str = "edge", **options: Any
) -> Route:
    """An HTTPRoute of the gateway; a rule that is a text is one match."""
    found = tuple(rule(one) if isinstance(one, str) else one for one in rules)
    parents = options.pop("parents", (ParentRef("edge", "gw"),))
    return Route("HTTPRoute", namespace, name, tuple(hosts), parents, found or (RouteRule(),), **options)


def request(
    written: str | None = None,
    host: str | object | None = ...,
    port: int | None = None,
    sni: str | object | None = ...,
    headers: Mapping[str, str | None] | None = None,
    queries: Mapping[str, str | None] | None = None,
) -> Request:
    """`GET /path`, or a part of it. An attribute that is left out is unknown, and None is absent."""
    values: dict[Attribute, Known] = {}
    for word in (written or "").split():
        values[PATH if word.startswith("/") else METHOD] = word
    if host is None or isinstance(host, str):
        values[HOST] = host
    if sni is None or isinstance(sni, str):
        values[SNI] = sni
    if port is not None:
        values[PORT] = port
    values |= {header(name): value for name, value in (headers or {}).items()}
    values |= {query(name): value for name, value in (queries or {}).items()}
    return Request(values)


def possible(table: RoutingTable, asked: Request) -> tuple[Routed | None, ...]:
    """Every rule that may be chosen for a request, in order; last None, if possibly no rule is chosen."""
    once: dict[tuple[str, int] | None, Routed | None] = {}
    for routed in table.possible_by_listener(asked):
        once.setdefault(None if routed is None else (routed.route.key, routed.rule), routed)
    return tuple(once.values())


def possible_routes(world: World, gateway: Gateway, asked: Request) -> tuple[Routed | None, ...]:
    """The same rules, for a gateway of a world."""
    return possible(RoutingTable.of(world, gateway), asked)


def route_names(objects: Iterable[WorldObject], asked: Request, gateway: Gateway = GATEWAY) -> list[str]:
    """The possible routes: `name` for the first rule of a route, `name/1` for the second, `404` for none."""
    found = possible_routes(World.of(objects), gateway, asked)
    return ["404" if one is None else f"{one.route.name}/{one.rule}".removesuffix("/0") for one in found]
