"""Forwarded TLS: the SNI chooses the listener, and the TLSRoute."""

from __future__ import annotations

import pytest

from eastgate.cluster import (
    Gateway,
    GrpcRule,
    Listener,
    ListenerTls,
    ParentRef,
    Route,
    RouteBackend,
    StreamRule,
    TlsMode,
    World,
)
from eastgate.cluster.routing.journey import through_gateway, through_route
from tests.cluster.routing.building import gateway, https, possible_routes, request, route, route_names


def passthrough(name: str, hostname: str | None = None, port: int = 443) -> Listener:
    return Listener(name, port, "TLS", hostname, tls=ListenerTls(TlsMode.PASSTHROUGH))


def tls(name: str, *hosts: str, to: str = "web", gateway: str = "gw") -> Route:
    rules = (StreamRule((RouteBackend("edge", to, port=443),)),)
    return Route("TLSRoute", "edge", name, hosts, (ParentRef("edge", gateway),), stream_rules=rules)


EXACT, WILDCARD = "abc.example.com", "*.example.com"
INTERSECTIONS: list[tuple[str | None, list[Route], dict[str, str]]] = [
    # the hostname of the listener, the routes, the destination of each SNI: as upstream tests them
    (EXACT, [tls("r", WILDCARD)], {"abc.example.com": "r", "def.example.com": "404", "example.com": "404"}),
    (
        WILDCARD,
        [tls("r", EXACT), tls("s", "*.com")],
        {"abc.example.com": "r", "def.example.com": "s", "abc.com": "404", "example.com": "404"},
    ),
    ("*.com", [tls("r", EXACT), tls("s", WILDCARD)], {"abc.example.com": "r", "x.example.com": "s", "x.com": "404"}),
    (None, [tls("r", EXACT), tls("s", "*.com")], {"abc.example.com": "r", "x.com": "s", "x.org": "404"}),
]


@pytest.mark.parametrize(("hostname", "routes", "led"), INTERSECTIONS)
def test_hostnames_as_upstream_tests_them(hostname: str | None, routes: list[Route], led: dict[str, str]) -> None:
    of = gateway(passthrough("l", hostname))
    assert {sni: route_names(routes, request(sni=sni, port=443), of) for sni in led} == {
        sni: [taken] for sni, taken in led.items()
    }


MIXED = gateway(passthrough("p", "a.x"), https("h", "*.x"))
ROUTES = [tls("t", "a.x"), route("r")]


def test_the_sni_decides_whatever_the_host_is() -> None:
    assert route_names(ROUTES, request("GET /", "b.x", 443, "a.x"), MIXED) == ["t"]
    assert route_names(ROUTES, request("GET /", "b.x", 443, "b.x"), MIXED) == ["r"]


def test_an_sni_that_is_not_known_may_be_that_of_the_host() -> None:
    assert sorted(route_names(ROUTES, request("GET /", "a.x", 443), MIXED)) == ["r", "t"]
    assert route_names(ROUTES, request("GET /", "b.x", 443), MIXED) == ["r"]
    assert route_names([tls("t", "a.x")], request("GET /", "a.x", 443), gateway(passthrough("p"))) == ["t"]


def test_an_http_route_is_not_attached_to_tls_nor_a_tls_route_to_https() -> None:
    assert route_names([route("r")], request("GET /", "a.x", 443, "a.x"), gateway(passthrough("p"))) == ["404"]
    assert route_names([tls("t", "a.x")], request("GET /", "a.x", 443, "a.x"), gateway(https("h"))) == ["404"]


def test_on_such_a_way_no_http_is_seen() -> None:
    world = World.of([MIXED, *ROUTES])
    ways = [list(through_gateway(MIXED, request("GET /", sni, 443, sni), world)) for sni in ("a.x", "b.x")]
    assert [[(way.leads_to, way.hides_http) for way in each] for each in ways] == [
        [("Service edge/web", True)],
        [(None, False)],
    ]


def test_a_route_can_be_asked_about() -> None:
    declared, unknown = tls("t", "a.x"), tls("u", "a.x", gateway="other")
    world = World.of([MIXED, declared, unknown])
    assert [way.leads_to for way in through_route(declared, request(sni="a.x"), world)] == ["Service edge/web"]
    assert [way.leads_to for way in through_route(unknown, request(sni="a.x"), world)] == ["Service edge/web"]
    assert [str(way.points[-1]) for way in through_route(declared, request(sni="b.x"), world)] == ["no-route"]


def test_a_gateway_without_tls_routes_leads_nowhere() -> None:
    assert route_names([], request(sni="a.x", port=443), Gateway("edge", "gw", (passthrough("p"),))) == ["404"]


def test_a_question_about_whichever_hosts_there_are_is_about_those_whose_http_is_seen() -> None:
    world = World.of([MIXED, *ROUTES])
    ways = list(through_gateway(MIXED, request("POST /"), world, is_message=True))
    assert [way.hides_http for way in ways] == [False]
    only = gateway(passthrough("p"))
    world = World.of([only, tls("t", "a.x")])
    assert [way.hides_http for way in through_gateway(only, request("POST /"), world, is_message=True)] == [True]


def test_routes_of_one_name_are_distinguished() -> None:
    of = gateway(passthrough("p"), Listener("h", 80, "HTTP"))
    calls = Route("GRPCRoute", "edge", "t", ("a.x",), (ParentRef("edge", "gw"),), grpc_rules=(GrpcRule(),))
    taken = possible_routes(World.of([tls("t", "a.x"), calls]), of, request("POST /", "a.x"))
    assert [routed.route.kind for routed in taken if routed is not None] == ["GRPCRoute", "TLSRoute"]
