"""GRPCRoutes: matches of calls, their order, and routing beside HTTPRoutes. With upstream's own examples."""

from __future__ import annotations

import pytest

from eastgate.cluster import AllowedRoutes, GrpcMatch, GrpcRule, Listener, ParentRef, Route, ValueMatch
from tests.cluster.routing.building import gateway, request, route, route_names, rule

ECHO = "gateway_api_conformance.echo_basic.grpcecho.GrpcEcho"
GRPC_KIND = ("gateway.networking.k8s.io", "GRPCRoute")


def headers(**values: str) -> GrpcMatch:
    return GrpcMatch(headers=tuple(ValueMatch(name, value) for name, value in values.items()))


def calls(name: str, *rules: GrpcMatch | tuple[GrpcMatch, ...], hosts: tuple[str, ...] = (), **options: str) -> Route:
    """A GRPCRoute of the gateway; a rule has one match, or several, and no rules are one for all calls."""
    parent = ParentRef("edge", "gw", section_name=options.pop("section", None))
    matches = [rule if isinstance(rule, tuple) else (rule,) for rule in rules] or [()]
    written = tuple(GrpcRule(match) for match in matches)
    return Route("GRPCRoute", "edge", name, hosts, (parent,), grpc_rules=written, created=options.get("created"))


MATCHES: list[tuple[str, GrpcMatch, str, bool]] = [
    ("a service and a method", GrpcMatch("a.B", "Get"), "POST /a.B/Get", True),
    ("another method", GrpcMatch("a.B", "Get"), "POST /a.B/Put", False),
    ("methods have a case", GrpcMatch("a.B", "Get"), "POST /a.B/get", False),
    ("no more than the method", GrpcMatch("a.B", "Get"), "POST /a.B/Get/x", False),
    ("a service", GrpcMatch("a.B"), "POST /a.B/Any", True),
    ("a longer service", GrpcMatch("a.B"), "POST /a.BC/Any", False),
    ("a method of any service", GrpcMatch(None, "Get"), "POST /x.Y/Get", True),
    ("a method of no service", GrpcMatch(None, "Get"), "POST /Get", False),
    ("not the end of a method", GrpcMatch(None, "Get"), "POST /x.Y/ForGet", False),
    ("expressions", GrpcMatch("a[.].*", "Get|Put", regex=True), "POST /a.B/Put", True),
    ("expressions are for the whole name", GrpcMatch("a", "Get|Put", regex=True), "POST /a.B/Put", False),
    ("an expression for the method alone", GrpcMatch(None, "G.t", regex=True), "POST /x/Got", True),
    ("any call", GrpcMatch(), "POST /x.Y/Any", True),
    ("a call is a POST", GrpcMatch(), "GET /x.Y/Any", False),
]


@pytest.mark.parametrize(("_sentence", "match", "asked", "matches"), MATCHES, ids=[row[0] for row in MATCHES])
def test_the_calls_that_a_match_means(_sentence: str, match: GrpcMatch, asked: str, matches: bool) -> None:
    assert route_names([calls("r", match)], request(asked, "a")) == ["r" if matches else "404"]


def test_a_rule_without_matches_is_for_every_call() -> None:
    assert route_names([calls("r")], request("POST /a.B/C", "a")) == ["r"]


def test_exact_methods_as_upstream_tests_them() -> None:
    routes = [calls("r", GrpcMatch(ECHO, "Echo"), GrpcMatch(ECHO, "EchoTwo"))]
    asked = [request(f"POST /{ECHO}/{method}", "a") for method in ("Echo", "EchoTwo", "EchoThree")]
    assert [route_names(routes, each) for each in asked] == [["r"], ["r/1"], ["404"]]


HEADERS: list[tuple[dict[str, str], str]] = [
    ({"version": "one"}, "r"),
    ({"version": "two"}, "r/1"),
    ({"version": "two", "color": "orange"}, "r/2"),
    ({"color": "blue"}, "r/3"),
    ({"color": "green"}, "r/3"),
    ({"color": "red"}, "r/4"),
    ({"color": "yellow"}, "r/4"),
    ({"color": "purple"}, "404"),
    ({}, "404"),
    ({"version": "one", "color": "red"}, "r"),
]


@pytest.mark.parametrize(("given", "taken"), HEADERS)
def test_headers_as_upstream_tests_them(given: dict[str, str], taken: str) -> None:
    rules = [headers(version="one"), headers(version="two"), headers(version="two", color="orange")]
    one_of = (headers(color="blue"), headers(color="green")), (headers(color="red"), headers(color="yellow"))
    asked = request(f"POST /{ECHO}/Echo", "a", headers={"version": None, "color": None, **given})
    assert route_names([calls("r", *rules, *one_of)], asked) == [taken]


LISTENERS = gateway(
    Listener("1", 80, "HTTP", "bar.com"),
    Listener("2", 80, "HTTP", "foo.bar.com"),
    Listener("3", 80, "HTTP", "*.bar.com"),
    Listener("4", 80, "HTTP", "*.foo.com"),
)
HOSTS = [("bar.com", "v1"), ("foo.bar.com", "v2"), ("baz.bar.com", "v3"), ("multiple.prefixes.bar.com", "v3")]
HOSTS += [("multiple.prefixes.foo.com", "v4"), ("foo.com", "404"), ("no.matching.host", "404")]


@pytest.mark.parametrize(("host", "taken"), HOSTS)
def test_hostnames_of_listeners_as_upstream_tests_them(host: str, taken: str) -> None:
    routes = [calls(f"v{number}", section=str(number)) for number in range(1, 5)]
    assert route_names(routes, request(f"POST /{ECHO}/Echo", host), LISTENERS) == [taken]


ORDER: list[tuple[str, list[Route], str]] = [
    ("the longer service", [calls("a", GrpcMatch("a")), calls("b", GrpcMatch("a.B"))], "b"),
    ("a method beside the service", [calls("a", GrpcMatch("a.B")), calls("b", GrpcMatch("a.B", "Get"))], "b"),
    ("a service before a method", [calls("a", GrpcMatch(None, "Get")), calls("b", GrpcMatch("a.B"))], "b"),
    ("more headers", [calls("a", headers(v="1")), calls("b", headers(v="1", w="2"))], "b"),
    ("a method before headers", [calls("a", headers(v="1", w="2")), calls("b", GrpcMatch(None, "Get"))], "b"),
    ("a name before an expression", [calls("a", GrpcMatch(".*", regex=True)), calls("b", GrpcMatch("a.B"))], "b"),
    ("an expression before none", [calls("a"), calls("b", GrpcMatch(".*", regex=True))], "b"),
    ("an exact hostname", [calls("a", GrpcMatch("a.B"), hosts=("*.x",)), calls("b", hosts=("h.x",))], "b"),
    ("the older route", [calls("a", created="2021-01-01"), calls("b", created="2020-01-01")], "b"),
    ("the first name", [calls("b"), calls("a")], "a"),
    ("the first rule", [calls("a", GrpcMatch(), GrpcMatch())], "a"),
]


@pytest.mark.parametrize(("_sentence", "routes", "taken"), ORDER, ids=[row[0] for row in ORDER])
def test_the_order_of_matches(_sentence: str, routes: list[Route], taken: str) -> None:
    asked = request("POST /a.B/Get", "h.x", headers={"v": "1", "w": "2"})
    assert route_names(routes, asked) == [taken]


def web(name: str, *hosts: str, created: str | None = None) -> Route:
    return route(name, rule(), hosts=hosts, created=created)


CONFLICTS: list[tuple[str, list[Route], str]] = [
    ("the older is accepted", [web("h", created="2021-01-01"), calls("g", created="2020-01-01")], "g"),
    ("also the other way", [web("h", created="2020-01-01"), calls("g", created="2021-01-01")], "h"),
    ("then the first name", [web("h"), calls("g")], "g"),
    ("of one name, the HTTPRoute", [calls("a"), web("a")], "a"),
    ("hostnames that meet", [web("h", "a.x", created="2020-01-01"), calls("g", hosts=("*.x",))], "h"),
    ("hostnames apart", [web("h", "b.x", created="2020-01-01"), calls("g", hosts=("a.x",))], "g"),
    (
        "a route that is not accepted refuses none",
        [web("h", "a.x", created="2020-01-01"), calls("g", hosts=("*.x",), created="2021-01-01"), web("i", "b.x")],
        "h",
    ),
]


@pytest.mark.parametrize(("_sentence", "routes", "taken"), CONFLICTS, ids=[row[0] for row in CONFLICTS])
def test_an_http_route_and_a_grpc_route_do_not_share_a_hostname(
    _sentence: str, routes: list[Route], taken: str
) -> None:
    assert route_names(routes, request("POST /a.B/Get", "a.x")) == [taken]


def test_a_route_that_is_not_accepted_takes_no_other_host_either() -> None:
    routes = [web("h", "a.x", created="2020-01-01"), calls("g", hosts=("*.x",)), web("i", "b.x")]
    assert route_names(routes, request("POST /a.B/Get", "c.x")) == ["404"]
    assert route_names(routes, request("POST /a.B/Get", "b.x")) == ["i"]


def test_on_another_listener_there_is_no_conflict() -> None:
    two = gateway(Listener("1", 80, "HTTP"), Listener("2", 81, "HTTP"))
    routes = [route("h", parents=(ParentRef("edge", "gw", section_name="1"),)), calls("g", section="2")]
    assert route_names(routes, request("POST /a.B/C", "a", 80), two) == ["h"]
    assert route_names(routes, request("POST /a.B/C", "a", 81), two) == ["g"]


def test_a_listener_that_allows_only_grpc_routes_has_no_others() -> None:
    only = gateway(Listener("1", 80, "HTTP", allowed_routes=AllowedRoutes(kinds=(GRPC_KIND,))))
    assert route_names([web("a", created="2020-01-01"), calls("g")], request("POST /a.B/C", "a"), only) == ["g"]
