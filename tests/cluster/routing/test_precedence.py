"""The rule that Gateway API chooses among several matching ones."""

from __future__ import annotations

import pytest

from eastgate.cluster import AllowedRoutes, Listener, Route, RoutesFrom
from tests.cluster.routing.building import gateway, match, request, route, route_names, rule

PATHS: list[tuple[str, str, bool]] = [
    # a path as a match has it, the path of a request, whether it matches
    ("/foo", "/foo", True),
    ("/foo", "/foo/", True),
    ("/foo", "/foo/bar", True),
    ("/foo", "/foobar", False),
    ("/foo", "/Foo", False),
    ("/foo", "/", False),
    ("/foo/", "/foo", True),
    ("/foo/", "/foo/bar", True),
    ("/foo/", "/foobar", False),
    ("/", "/anything/at/all", True),
    ("=/foo", "/foo", True),
    ("=/foo", "/foo/", False),
    ("=/foo", "/foo/bar", False),
    ("=/foo/", "/foo", False),
    ("=/", "/", True),
    ("=/", "/a", False),
    ("/foo", "//foo", True),
    ("/foo", "/bar/../foo?x=/", True),
    ("=/foo", "/%66oo", True),
    ("~/v[0-9]+/.*", "/v12/x", True),
    ("~/v[0-9]+", "/v12/x", False),
    ("~v[0-9]+", "/v12", False),
    ("~/a|/b", "/b", True),
    ("~/(a+)+$", "/" + "a" * 5000 + "b", False),
]


@pytest.mark.parametrize(("written", "path", "matches"), PATHS)
def test_a_path_is_compared_exactly_or_by_whole_segments_or_by_an_expression_for_all_of_it(
    written: str, path: str, matches: bool
) -> None:
    assert route_names([route("r", written)], request(f"GET {path}", "a")) == (["r"] if matches else ["404"])


def test_the_prefix_of_everything_needs_no_path() -> None:
    assert route_names([route("r", "/")], request("OPTIONS", "a")) == ["r"]


VALUES: list[tuple[str, dict[str, str], dict[str, str | None], bool]] = [
    ("the value is equal", {"x_a": "1"}, {"X-A": "1"}, True),
    ("case counts in values", {"x_a": "v"}, {"x-a": "V"}, False),
    ("it is absent", {"x_a": "1"}, {"x-a": None}, False),
    ("all of it matches", {"x_a": "~[0-9]+"}, {"x-a": "12"}, True),
    ("a part of it matches", {"x_a": "~[0-9]+"}, {"x-a": "12b"}, False),
    ("nothing is there to match", {"x_a": "~.*"}, {"x-a": None}, False),
    ("all headers must match", {"x_a": "1", "x_b": "2"}, {"x-a": "1", "x-b": "3"}, False),
]


@pytest.mark.parametrize(("_sentence", "asked", "has", "matches"), VALUES, ids=[row[0] for row in VALUES])
def test_a_header_has_the_value_or_matches(
    _sentence: str, asked: dict[str, str], has: dict[str, str | None], matches: bool
) -> None:
    found = route_names([route("r", rule(match("", **asked)))], request("GET /", "a", headers=has))
    assert found == (["r"] if matches else ["404"])


def test_methods_and_query_parameters_must_be_equal() -> None:
    routes = [route("r", "POST /a ?v=1")]
    assert route_names(routes, request("POST /a", "a", queries={"v": "1"})) == ["r"]
    assert route_names(routes, request("post /a", "a", queries={"v": "1"})) == ["404"]
    assert route_names(routes, request("POST /a", "a", queries={"v": "2"})) == ["404"]
    assert route_names(routes, request("POST /a", "a", queries={"v": None})) == ["404"]


HEADERS = {"x-a": "1", "x-b": "1", "x-c": "1"}
ORDER: list[tuple[str, list[Route]]] = [
    # each route would win by the next sentence, and comes last by its name
    ("an exact path before a prefix", [route("z", "=/a/b"), route("y", "GET /a/b ?q=1")]),
    ("a long prefix before a short one", [route("z", "/a/b"), route("y", "GET /a ?q=1")]),
    ("a prefix before an expression", [route("z", "/"), route("y", "GET ~/a/b ?q=1")]),
    ("a method before none", [route("z", "GET /a"), route("y", rule(match("/a", x_a="1", x_b="1")))]),
    (
        "more headers",
        [route("z", rule(match("/a", x_a="1", x_b="1"))), route("y", rule(match("/a ?q=1 ?r=1", x_a="1")))],
    ),
    ("more query parameters", [route("z", "/a ?q=1 ?r=1"), route("y", "/a ?q=1", created="2020-01-01T00:00:00Z")]),
    (
        "the older route",
        [route("z", "/a", created="2020-01-01T00:00:00Z"), route("y", "/a", created="2020-01-01T00:00:01Z")],
    ),
    (
        "one that is there before one that is to come",
        [route("z", "/a", created="2026-01-01T00:00:00Z"), route("y", "/a")],
    ),
    ("the name", [route("a", "/a"), route("b", "/a")]),
]


@pytest.mark.parametrize(("_sentence", "routes"), ORDER, ids=[row[0] for row in ORDER])
@pytest.mark.parametrize("turned", [False, True])
def test_the_first_of_these_is_taken(_sentence: str, routes: list[Route], turned: bool) -> None:
    asked = request("GET /a/b", "a", headers=HEADERS, queries={"q": "1", "r": "1"})
    assert route_names(routes[::-1] if turned else routes, asked) == [routes[0].name]


def test_within_a_route_the_better_match_is_taken_and_of_equals_the_first_rule() -> None:
    routes = [route("r", "/a", rule("=/x", "/a/b"), "/a/b")]
    assert route_names(routes, request("GET /a/b/c", "a")) == ["r/1"]
    assert route_names(routes, request("GET /a/c", "a")) == ["r"]


def test_names_are_compared_with_their_namespaces() -> None:
    everyone = gateway(Listener("only", 80, "HTTP", None, AllowedRoutes(RoutesFrom.ALL)))
    routes = [route("a", namespace="shop"), route("b", namespace="blog")]
    assert route_names(routes, request("GET /", "a"), everyone) == ["b"]


# The table of Gateway API's own conformance suite (HTTPRouteHeaderMatching), by rule.
MATCHING = route(
    "m",
    rule(match(version="one")),
    rule(match(version="two")),
    rule(match(version="two", color="orange")),
    rule(match(color="blue"), match(color="green")),
    rule(match(color="red"), match(color="yellow")),
)


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ({"version": "one", "color": None}, "m"),
        ({"version": "two", "color": None}, "m/1"),
        ({"version": "two", "color": "orange"}, "m/2"),
        ({"version": None, "color": "blue"}, "m/3"),
        ({"version": None, "color": "green"}, "m/3"),
        ({"version": None, "color": "yellow"}, "m/4"),
        ({"version": "two", "color": "yellow"}, "m/1"),
        ({"version": None, "color": "purple"}, "404"),
    ],
)
def test_headers_are_distinguished(headers: dict[str, str | None], taken: str) -> None:
    assert route_names([MATCHING], request("GET /", "a", headers=headers)) == [taken]
