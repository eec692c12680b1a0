"""On generated gateways with HTTPRoutes, GRPCRoutes and TLSRoutes: the rule of the brute-force search."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.cluster import Gateway, GrpcMatch, GrpcRule, Listener, ParentRef, Route, RouteRule, StreamRule, World
from eastgate.ir import Request
from eastgate.ir.attributes import HOST, METHOD, PATH, PORT, SNI
from tests.cluster.routing import naive
from tests.cluster.routing.building import possible_routes
from tests.cluster.routing.test_generated import HOSTNAMES, HOSTS

KINDS = {"HTTP": ("HTTPRoute", "GRPCRoute"), "HTTPS": ("HTTPRoute", "GRPCRoute"), "TLS": ("TLSRoute",)}
SERVICES, CALLS = [None, "a", "a.B", "c"], [None, "Get", "Put", "GetAll"]

listeners = st.builds(
    Listener,
    st.sampled_from(["one", "two", "three"]),
    st.sampled_from([80, 443]),
    st.sampled_from(["HTTP", "HTTPS", "TLS", "TLS"]),
    st.sampled_from([None, None, *HOSTNAMES]),
)
gateways = st.lists(
    listeners,
    min_size=1,
    max_size=4,
    unique_by=(lambda of: of.name, lambda of: (of.port, of.protocol == "HTTP", of.hostname)),
).map(lambda drawn: Gateway("edge", "gw", tuple(drawn)))
calls = st.builds(GrpcMatch, st.sampled_from(SERVICES), st.sampled_from(CALLS))
grpc_rules = st.lists(st.builds(GrpcRule, st.lists(calls, max_size=2).map(tuple)), min_size=1, max_size=2).map(tuple)


def route(kind: str) -> st.SearchStrategy[Route]:
    parent = ParentRef("edge", "gw")
    return st.builds(
        Route,
        st.just(kind),
        st.just("edge"),
        st.sampled_from(["r", "s", "t"]),
        st.lists(st.sampled_from(HOSTNAMES), max_size=2).map(tuple),
        st.just((parent,)),
        rules=st.just((RouteRule(),) if kind == "HTTPRoute" else ()),
        grpc_rules=grpc_rules if kind == "GRPCRoute" else st.just(()),
        stream_rules=st.just((StreamRule(),) if kind == "TLSRoute" else ()),
        created=st.sampled_from([None, "2020", "2021"]),
    )


routes = st.lists(
    st.sampled_from(["HTTPRoute", "GRPCRoute", "TLSRoute"]).flatmap(route),
    min_size=1,
    max_size=6,
    unique_by=lambda drawn: drawn.key,
)


def age(route: Route) -> tuple[str, str, bool]:
    return route.created or "9999", f"{route.namespace}/{route.name}", route.kind != "HTTPRoute"


def has(route: Route, host: str | None) -> bool:
    return any(naive.means(name, host) for name in route.hostnames or (None,))


def accepted(asking: list[Route], listener: Listener) -> list[Route]:
    """The routes that a listener accepts: an older route excludes all routes of the other kind with a common host."""
    hosts = [host for host in HOSTS if naive.means(listener.hostname, host)]
    taken: list[Route] = []
    for route in sorted(asking, key=age):
        others = [other for other in taken if other.kind != route.kind]
        if not any(has(route, host) and has(other, host) for other in others for host in hosts):
            taken.append(route)
    return taken


def chosen_listener(gateway: Gateway, port: int, host: str | None, sni: str | None) -> Listener | None:
    secure = [of for of in gateway.listeners if of.port == port and of.protocol != "HTTP"]
    by_sni = naive.best_listener(secure, sni)
    plain = any(of.port == port and of.protocol == "HTTP" for of in gateway.listeners)
    if by_sni is not None and by_sni.protocol == "TLS" and not (plain and sni is None):
        return by_sni
    return naive.listener_of(gateway, Request({PORT: port, HOST: host, SNI: sni}))


def choose(world: World, gateway: Gateway, port: int, host: Any, sni: Any, path: str) -> tuple[str, int] | None:
    listener = chosen_listener(gateway, port, host, sni)
    if listener is None:
        return None
    name = sni if listener.protocol == "TLS" else host
    asking = [route for route in world.routes.values() if route.kind in KINDS[listener.protocol]]
    service, _, method = path[1:].partition("/")
    best: list[tuple[Any, tuple[str, int]]] = []
    for route in accepted(asking, listener):
        hostnames = [written for written in route.hostnames or (None,) if naive.means(written, name)]
        if not hostnames:
            continue
        specific = [-part for part in max(map(naive.how_specific, hostnames))]
        if route.kind != "GRPCRoute":
            best.append(((specific, (0, 0), age(route), 0, 0), (route.key, 0)))
        for number, rule in enumerate(route.grpc_rules):
            for position, match in enumerate(rule.matches or (GrpcMatch(),)):
                if match.service in (None, service) and match.method in (None, method):
                    length = -len(match.service or ""), -len(match.method or "")
                    best.append(((specific, length, age(route), number, position), (route.key, number)))
    return min(best)[1] if best else None


@settings(max_examples=400, deadline=None)
@given(
    gateways,
    routes,
    st.sampled_from([80, 443]),
    st.sampled_from(HOSTS),
    st.sampled_from([..., ..., *HOSTS]),
    st.sampled_from(["/a/Get", "/a.B/Get", "/a.B/Put", "/a.B/GetAll", "/c/Any", "/d/Get"]),
)
def test_a_wholly_known_request_takes_the_rule_that_brute_force_finds(
    gateway: Gateway, drawn: list[Route], port: int, host: str | None, sni: object, path: str
) -> None:
    world = World.of(drawn)
    shown = sni if sni is None or isinstance(sni, str) else host
    request = Request({PORT: port, HOST: host, SNI: shown, METHOD: "POST", PATH: path})
    taken = [None if of is None else (of.route.key, of.rule) for of in possible_routes(world, gateway, request)]
    assert taken == [choose(world, gateway, port, host, shown, path)]
