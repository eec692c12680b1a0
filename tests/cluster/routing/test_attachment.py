"""A route is attached to the parents that it names, if the listener allows it."""

from __future__ import annotations

import pytest

from eastgate.cluster import (
    AllowedRoutes,
    Gateway,
    Listener,
    Namespace,
    ParentRef,
    Requirement,
    Route,
    RoutesFrom,
    Selector,
    WorldObject,
)
from eastgate.ir.labels import Operator
from tests.cluster.routing.building import gateway, https, request, route, route_names

TWO = gateway(Listener("one", 80, "HTTP"), Listener("two", 8080, "HTTP"))

PARENTS: list[tuple[str, ParentRef, list[int]]] = [
    # a sentence, the parent, the ports on which the route is found
    ("the whole gateway", ParentRef("edge", "gw"), [80, 8080]),
    ("one listener", ParentRef("edge", "gw", section_name="two"), [8080]),
    ("one port", ParentRef("edge", "gw", port=80), [80]),
    ("a listener and its port", ParentRef("edge", "gw", section_name="two", port=8080), [8080]),
    ("a listener and another's port", ParentRef("edge", "gw", section_name="two", port=80), []),
    ("a listener that is not there", ParentRef("edge", "gw", section_name="three"), []),
    ("another gateway", ParentRef("edge", "other"), []),
    ("a gateway of another namespace", ParentRef("shop", "gw"), []),
    ("a Service", ParentRef("edge", "gw", "", "Service"), []),
    ("a gateway of another group", ParentRef("edge", "gw", "example.com"), []),
]


@pytest.mark.parametrize(("_sentence", "parent", "ports"), PARENTS, ids=[row[0] for row in PARENTS])
def test_a_route_is_where_its_parent_is(_sentence: str, parent: ParentRef, ports: list[int]) -> None:
    found = [
        port
        for port in (80, 8080)
        if route_names([route("r", parents=(parent,))], request("GET /", "a", port), TWO) == ["r"]
    ]
    assert found == ports


BLUE = Selector.of({"team": "blue"})
NOT_BLUE = Selector.of({}, [Requirement("team", Operator.NOT_IN, frozenset({"blue"}))])
NAMED = Selector.of({"kubernetes.io/metadata.name": "shop"})
HTTP_KIND = ("gateway.networking.k8s.io", "HTTPRoute")
ALLOWED: list[tuple[str, AllowedRoutes, dict[str, bool]]] = [
    # a sentence, what the listener allows, from which namespaces a route is taken
    ("the same namespace, by default", AllowedRoutes(), {"edge": True, "shop": False}),
    ("all namespaces", AllowedRoutes(RoutesFrom.ALL), {"edge": True, "shop": True}),
    ("a label", AllowedRoutes(RoutesFrom.SELECTOR, BLUE), {"edge": False, "shop": True, "blog": False}),
    ("its absence", AllowedRoutes(RoutesFrom.SELECTOR, NOT_BLUE), {"edge": True, "shop": False, "blog": True}),
    ("a name", AllowedRoutes(RoutesFrom.SELECTOR, NAMED), {"edge": False, "shop": True, "undeclared": False}),
    ("a selector that is not there", AllowedRoutes(RoutesFrom.SELECTOR), {"edge": False, "shop": False}),
    ("this kind", AllowedRoutes(kinds=(HTTP_KIND,)), {"edge": True}),
    ("another kind", AllowedRoutes(kinds=(("gateway.networking.k8s.io", "GRPCRoute"),)), {"edge": False}),
    ("another group", AllowedRoutes(kinds=(("example.com", "HTTPRoute"),)), {"edge": False}),
    ("several kinds", AllowedRoutes(kinds=(("example.com", "X"), HTTP_KIND)), {"edge": True}),
]


@pytest.mark.parametrize(("_sentence", "allowed", "taken"), ALLOWED, ids=[row[0] for row in ALLOWED])
def test_a_listener_takes_the_routes_that_it_allows(
    _sentence: str, allowed: AllowedRoutes, taken: dict[str, bool]
) -> None:
    only = gateway(Listener("only", 80, "HTTP", None, allowed))
    for namespace, expected in taken.items():
        objects: list[WorldObject] = [
            Namespace("shop", {"team": "blue"}),
            Namespace("blog"),
            route("r", namespace=namespace),
        ]
        assert route_names(objects, request("GET /", "a"), only) == (["r"] if expected else ["404"])


@pytest.mark.parametrize(
    ("protocol", "reads"),
    [("HTTP", True), ("http", True), ("HTTPS", True), ("TLS", False), ("TCP", False), ("UDP", False), ("a.b/c", False)],
)
def test_only_http_and_https_listeners_have_http_routes(protocol: str, reads: bool) -> None:
    only = gateway(Listener("only", 80, protocol))
    assert route_names([route("r")], request("GET /", "a", 80), only) == (["r"] if reads else ["404"])


def test_other_kinds_of_routes_are_not_asked() -> None:
    parents = (ParentRef("edge", "gw"),)
    others = [Route(kind, "edge", "r", (), parents) for kind in ("GRPCRoute", "TCPRoute", "TLSRoute")]
    assert route_names(others, request("GET /", "a")) == ["404"]


def test_a_route_with_two_parents_is_attached_to_both_and_found_once() -> None:
    parents = (ParentRef("edge", "gw", section_name="one"), ParentRef("edge", "gw", port=8080), ParentRef("edge", "gw"))
    assert route_names([route("r", parents=parents)], request("GET /", "a"), TWO) == ["r"]


def test_a_gateway_without_listeners_and_a_port_without_listener_lead_nowhere() -> None:
    assert route_names([route("r")], request("GET /", "a"), Gateway("edge", "gw")) == ["404"]
    assert route_names([route("r")], request("GET /", "a", 81)) == ["404"]


A, B = https("a", "a.example.com"), https("b", "*.example.com")
TLS = https("pass", "p.example.com", protocol="TLS")
SECURE = gateway(A, B, TLS)
HANDSHAKES: list[tuple[str, str | object | None, str, str]] = [
    # the SNI (...: not known), the host, the result
    ("both the same", "a.example.com", "a.example.com", "a"),
    ("both the same, by a wildcard", "x.example.com", "y.example.com", "b"),
    ("the host is another listener's", "x.example.com", "a.example.com", "404"),
    ("the host is outside the listener", "a.example.com", "x.example.com", "404"),
    ("the host is nobody's", "a.example.com", "a.org", "404"),
    ("the SNI is nobody's", "a.org", "a.example.com", "404"),
    ("an SNI in capitals", "A.Example.com", "a.example.com", "a"),
    ("an SNI with a dot at its end is another name", "a.example.com.", "a.example.com", "404"),
    ("no wildcard means such a name", "x.example.com.", "x.example.com", "404"),
    ("an SNI with a port is another name", "a.example.com:443", "a.example.com", "404"),
    ("no SNI, and no listener for that", None, "a.example.com", "404"),
    ("the SNI is passed through", "p.example.com", "p.example.com", "404"),
    ("the host is one that is passed through, where the SNI is not", "x.example.com", "p.example.com", "b"),
    ("an SNI that is not known is not passed through", ..., "p.example.com", "b"),
    ("an SNI that is not known fits", ..., "a.example.com", "a"),
    ("an SNI that is not known fits any host", ..., "x.example.com", "b"),
]


@pytest.mark.parametrize(("_sentence", "sni", "host", "reached"), HANDSHAKES, ids=[row[0] for row in HANDSHAKES])
def test_over_tls_the_sni_and_the_host_must_choose_the_same_listener(
    _sentence: str, sni: str | object | None, host: str, reached: str
) -> None:
    routes = [route(name, parents=(ParentRef("edge", "gw", section_name=name),)) for name in "ab"]
    assert route_names(routes, request("GET /", host, 443, sni), SECURE) == [reached]


def test_without_tls_the_sni_does_not_matter() -> None:
    assert route_names([route("r")], request("GET /", "a.com", sni="b.com")) == ["r"]


def test_on_a_port_with_and_without_tls_the_sni_tells_which() -> None:
    both = gateway(Listener("plain", 80, "HTTP"), https("secure", port=80))
    routes = [route(name, parents=(ParentRef("edge", "gw", section_name=name),)) for name in ("plain", "secure")]
    assert route_names(routes, request("GET /", "a.com", 80, None), both) == ["plain"]
    assert route_names(routes, request("GET /", "a.com", 80, "a.com"), both) == ["secure"]
    assert route_names(routes, request("GET /", "a.com", 80), both) == ["plain", "secure"]
