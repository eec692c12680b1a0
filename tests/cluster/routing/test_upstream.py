"""The rules that requests take in the conformance tests of Gateway API for HTTPRoutes. Named after those tests."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from eastgate.cluster import (
    Gateway,
    GrantFrom,
    GrantTo,
    Listener,
    ParentRef,
    ReferenceGrant,
    Route,
    RouteBackend,
    World,
)
from tests.cluster.routing.building import GATEWAY, gateway, match, possible_routes, request, route, route_names, rule


def at(section: str, name: str, *rules: str, hosts: tuple[str, ...] = ()) -> Route:
    return route(name, *rules, hosts=hosts, parents=(ParentRef("edge", "gw", section_name=section),))


MATCHING = [route("r", rule("/", match(version="one")), rule("/v2", match(version="two")))]
ACROSS = [
    route("r", rule("/", match(version="one")), hosts=["example.com", "example.net"]),
    route("s", rule("/v2", match(version="two")), hosts=["example.com"]),
]
HEADERS = [
    route(
        "r",
        rule(match(version="one")),
        rule(match(version="two")),
        rule(match(version="two", color="orange")),
        rule(match(color="blue"), match(color="green")),
        rule(match(color="red"), match(color="yellow")),
    )
]
METHODS = [
    route("r", "POST", "GET", "PATCH"),
    route(
        "s",
        rule("PATCH /path1"),
        rule("PUT", match(version="four")),
        rule(match("POST /path3", version="two")),
        rule(match("/path4", version="three")),
        rule(match("PATCH /path5"), match(version="four")),
    ),
]
EXACT = [route("r", "=/one", "=/two")]
ORDER = [
    route("r", "=/match/exact/one", "=/match/exact", "/match", "/match/prefix", "/match/prefix/one", "=/match/any")
]
QUERIES = [
    route(
        "r",
        rule("?animal=whale"),
        rule("?animal=dolphin"),
        rule("?animal=dolphin ?color=blue"),
        rule("?ANIMAL=Whale"),
    )
]
HOSTS = gateway(
    Listener("1", 80, "HTTP", "bar.com"),
    Listener("2", 80, "HTTP", "foo.bar.com"),
    Listener("3", 80, "HTTP", "*.bar.com"),
    Listener("4", 80, "HTTP", "*.foo.com"),
)
OF_LISTENERS = [at(number, f"v{number}") for number in "1234"]
INTERSECTING = gateway(
    Listener("1", 80, "HTTP", "very.specific.com"),
    Listener("2", 80, "HTTP", "*.wildcard.io"),
    Listener("3", 80, "HTTP", "*.anotherwildcard.io"),
)
INTERSECTIONS = [
    route("s1", "/s1", hosts=["non.matching.com", "*.nonmatchingwildcard.io", "very.specific.com"]),
    route("s2", "/s2", hosts=["non.matching.com", "wildcard.io", "foo.wildcard.io", "foo.bar.wildcard.io"]),
    route("s3", "/s3", hosts=["non.matching.com", "*.specific.com"]),
    route("s4", "/s4", hosts=["*.anotherwildcard.io"]),
    route("s5", "/s5", hosts=["specific.but.wrong.com", "wildcard.io"]),
]
ISOLATED = gateway(
    Listener("any", 80, "HTTP"),
    Listener("short", 80, "HTTP", "*.example.com"),
    Listener("long", 80, "HTTP", "*.foo.example.com"),
    Listener("exact", 80, "HTTP", "abc.foo.example.com"),
)
ISOLATION = [at(section, section, f"/{section}") for section in ("any", "short", "long", "exact")]
ISOLATED_HOSTS = {
    "bar.com": "any",
    "bar.example.com": "short",
    "b.foo.example.com": "long",
    "abc.foo.example.com": "exact",
}

ROWS: list[tuple[str, list[Route], Gateway, str, str, dict[str, str], str]] = [
    # a test, routes, a gateway, a request: line, host and headers; the chosen rule
    *(
        ("HTTPRouteMatching", MATCHING, GATEWAY, f"GET {path}", "a", headers, taken)
        for path, headers, taken in [
            ("/", {}, "r"),
            ("/example", {}, "r"),
            ("/", {"version": "one"}, "r"),
            ("/v2", {}, "r/1"),
            ("/v2/example", {}, "r/1"),
            ("/", {"version": "two"}, "r/1"),
            ("/v2/", {}, "r/1"),
            ("/v2example", {}, "r"),
            ("/foo/v2/example", {}, "r"),
        ]
    ),
    *(
        ("HTTPRouteMatchingAcrossRoutes", ACROSS, GATEWAY, f"GET {path}", host, headers, taken)
        for host, path, headers, taken in [
            ("example.com", "/", {}, "r"),
            ("example.net", "/example", {}, "r"),
            ("example.com", "/example", {"version": "one"}, "r"),
            ("example.com", "/v2", {}, "s"),
            ("example.net", "/v2", {}, "r"),
            ("example.com", "/v2/example", {}, "s"),
            ("example.com", "/", {"version": "two"}, "s"),
        ]
    ),
    *(
        ("HTTPRouteHeaderMatching", HEADERS, GATEWAY, "GET /", "a", headers, taken)
        for headers, taken in [
            ({"version": "one"}, "r"),
            ({"version": "two"}, "r/1"),
            ({"version": "two", "color": "orange"}, "r/2"),
            ({"color": "blue"}, "r/3"),
            ({"color": "green"}, "r/3"),
            ({"color": "red"}, "r/4"),
            ({"color": "yellow"}, "r/4"),
            ({"color": "purple"}, "404"),
            ({"version": "one", "color": "red"}, "r"),
            ({"color": "orange"}, "404"),
            ({"some-other-header": "one"}, "404"),
        ]
    ),
    *(
        ("HTTPRouteMethodMatching", METHODS, GATEWAY, line, "a", headers, taken)
        for line, headers, taken in [
            ("POST /", {}, "r"),
            ("GET /", {}, "r/1"),
            ("HEAD /", {}, "404"),
            ("PATCH /path1", {}, "s"),
            ("PUT /", {"version": "four"}, "s/1"),
            ("POST /path3", {"version": "two"}, "s/2"),
            ("PATCH /path4", {"version": "three"}, "s/3"),
            ("PATCH /path5", {"version": "four"}, "s/4"),
        ]
    ),
    *(
        ("HTTPExactPathMatching", EXACT, GATEWAY, f"GET {path}", "a", {}, taken)
        for path, taken in [("/one", "r"), ("/two", "r/1"), ("/", "404"), ("/one/example", "404"), ("/Two", "404")]
    ),
    *(
        ("HTTPRoutePathMatchOrder", ORDER, GATEWAY, f"GET {path}", "a", {}, taken)
        for path, taken in [
            ("/match/exact/one", "r"),
            ("/match/exact", "r/1"),
            ("/match", "r/2"),
            ("/match/prefix", "r/3"),
            ("/match/prefix/one/any", "r/4"),
            ("/match/any", "r/5"),
        ]
    ),
    *(
        ("HTTPRouteListenerHostnameMatching", OF_LISTENERS, HOSTS, "GET /", host, {}, taken)
        for host, taken in [
            ("bar.com", "v1"),
            ("foo.bar.com", "v2"),
            ("baz.bar.com", "v3"),
            ("multiple.prefixes.bar.com", "v3"),
            ("multiple.prefixes.foo.com", "v4"),
            ("foo.com", "404"),
            ("no.matching.host", "404"),
        ]
    ),
    *(
        ("HTTPRouteHostnameIntersection", INTERSECTIONS, INTERSECTING, f"GET {path}", host, {}, taken)
        for host, path, taken in [
            ("very.specific.com", "/s1", "s1"),
            ("non.matching.com", "/s1", "404"),
            ("foo.nonmatchingwildcard.io", "/s1", "404"),
            ("foo.wildcard.io", "/s1", "404"),
            ("very.specific.com", "/non-matching-prefix", "404"),
            ("foo.wildcard.io", "/s2", "s2"),
            ("foo.bar.wildcard.io", "/s2", "s2"),
            ("wildcard.io", "/s2", "404"),
            ("very.specific.com", "/s2", "404"),
            ("very.specific.com", "/s3", "s3"),
            ("foo.specific.com", "/s3", "404"),
            ("foo.anotherwildcard.io", "/s4", "s4"),
            ("foo.bar.anotherwildcard.io", "/s4", "s4"),
            ("anotherwildcard.io", "/s4", "404"),
            ("specific.but.wrong.com", "/s5", "404"),
            ("wildcard.io", "/s5", "404"),
        ]
    ),
    *chain.from_iterable(
        (
            (
                "GatewayHTTPListenerIsolation",
                ISOLATION,
                ISOLATED,
                f"GET /{path}",
                host,
                {},
                own if path == own else "404",
            )
            for path in ("any", "short", "long", "exact")
        )
        for host, own in ISOLATED_HOSTS.items()
    ),
]


@pytest.mark.parametrize(
    ("_test", "routes", "of", "line", "host", "headers", "taken"),
    ROWS,
    ids=[f"{test} {host} {line} {' '.join(headers.values())}" for test, _, _, line, host, headers, _ in ROWS],
)
def test_a_request_takes_the_rule_that_upstream_expects(
    _test: str, routes: list[Route], of: Gateway, line: str, host: str, headers: dict[str, str], taken: str
) -> None:
    asked = request(line, host, 80, headers={"version": None, "color": None, **headers})
    assert route_names(routes, asked, of) == [taken]


PARAMETERS: list[tuple[dict[str, str], str]] = [
    ({"animal": "whale"}, "r"),
    ({"animal": "dolphin"}, "r/1"),
    ({"animal": "dolphin", "color": "blue"}, "r/2"),
    ({"ANIMAL": "Whale"}, "r/3"),
    ({"animal": "shark"}, "404"),
    ({"animal": "dolphin", "color": "red"}, "r/1"),
    ({}, "404"),
]


@pytest.mark.parametrize(("given", "taken"), PARAMETERS)
def test_query_parameters_as_upstream_expects(given: dict[str, str], taken: str) -> None:
    asked = request("GET /", "a", queries={"animal": None, "color": None, "ANIMAL": None, **given})
    assert route_names(QUERIES, asked) == [taken]


def test_of_weights_those_above_zero_count() -> None:
    backends = tuple(RouteBackend("edge", name, port=8080, weight=weight) for name, weight in (("a", 70), ("b", 30)))
    weighted = replace(rule(), backends=(*backends, RouteBackend("edge", "c", port=8080, weight=0)))
    (taken,) = possible_routes(World.of([route("r", weighted)]), GATEWAY, request("GET /", "a"))
    assert taken is not None
    assert [(ref.name, ref.weight) for ref in taken.backends] == [("a", 70), ("b", 30)]


GRANTS: list[tuple[GrantFrom, GrantTo, bool]] = [
    (GrantFrom("gateway.networking.k8s.io", "HTTPRoute", "edge"), GrantTo("", "Service"), True),
    (GrantFrom("gateway.networking.k8s.io", "HTTPRoute", "edge"), GrantTo("", "Service", "web-backend"), True),
    # HTTPRouteInvalidReferenceGrant: each is wrong in one field
    (GrantFrom("gateway.networking.k8s.io", "HTTPRoute", "other"), GrantTo("", "Service"), False),
    (GrantFrom("gateway.networking.k8s.io", "Gateway", "edge"), GrantTo("", "Service"), False),
    (GrantFrom("not-the-group", "HTTPRoute", "edge"), GrantTo("", "Service"), False),
    (GrantFrom("gateway.networking.k8s.io", "HTTPRoute", "edge"), GrantTo("", "Secret"), False),
    (GrantFrom("gateway.networking.k8s.io", "HTTPRoute", "edge"), GrantTo("", "Service", "not-web-backend"), False),
    (GrantFrom("gateway.networking.k8s.io", "HTTPRoute", "edge"), GrantTo("not-the-group", "Service"), False),
]


@pytest.mark.parametrize(("origin", "destination", "granted"), GRANTS)
def test_reference_grants_as_upstream_expects(origin: GrantFrom, destination: GrantTo, granted: bool) -> None:
    to = replace(rule(), backends=(RouteBackend("web", "web-backend", port=8080),))
    world = World.of([route("r", to), ReferenceGrant("web", "g", (origin,), (destination,))])
    (taken,) = possible_routes(world, GATEWAY, request("GET /", "a"))
    assert taken is not None
    assert [ref.granted for ref in taken.backends] == [granted]
