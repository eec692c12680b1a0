"""A partial request has every rule that could be chosen as answer, and no other."""

from __future__ import annotations

import pytest

from eastgate.cluster import Listener, Route, World
from eastgate.cluster.routing.candidates import candidates_of
from eastgate.cluster.targets import GatewayNamed
from eastgate.ir import ALWAYS, Request
from eastgate.ir.symbolic.reaching import Effort, reachable
from eastgate.ir.symbolic.trees import Entry
from tests.cluster.routing.building import gateway, match, request, route, route_names, rule

TABLE: list[tuple[str, list[Route], Request, list[str]]] = [
    ("a method that is not known", [route("r", "GET /a", "/a")], request("/a", "h"), ["r", "r/1"]),
    ("a path that is not known", [route("r", "=/a", "/a", "/")], request("GET", "h"), ["r", "r/1", "r/2"]),
    ("a path that may match nothing", [route("r", "=/a", "/b")], request("GET", "h"), ["r", "r/1", "404"]),
    ("a rule that is sure ends the list", [route("r", "/a", "/")], request("GET /a/b", "h"), ["r"]),
    ("a header that is not known", [route("r", rule(match(v="1")), "/")], request("GET /", "h"), ["r", "r/1"]),
    ("a header that is known", [route("r", rule(match(v="1")), "/")], request("GET /", "h", headers={"v": "1"}), ["r"]),
    ("a query parameter that is not known", [route("r", "?v=1")], request("GET /", "h"), ["r", "404"]),
    ("an unknown host", [route("a", hosts=["*.c"]), route("b", hosts=["a.c"])], request("GET /"), ["b", "a", "404"]),
    ("a rule that another always wins over", [route("a", "/x"), route("b", "/x")], request("GET", "h"), ["a", "404"]),
    (
        "rules with more headers come first",
        [route("r", rule(match("GET /x", v="1")), rule(match("GET /x")), rule(match("GET /x", w="1")))],
        request("GET /x", "h"),
        ["r", "r/2", "r/1"],
    ),
    (
        "a header has one of two values, or neither",
        [route("r", rule(match("/x", v="1")), rule(match("/x", v="2")), "/x")],
        request("GET /x", "h"),
        ["r", "r/1", "r/2"],
    ),
    ("an exact path below a prefix", [route("r", "=/a/b", "/a")], request("GET", "h"), ["r", "r/1", "404"]),
    (
        "a rule whose every request two others have taken, for either value of a header that it asks for",
        [
            route("a", rule(match("GET /x", v="1", w="1"))),
            route("b", rule(match("GET /x", v="1", w="1", u="1")), rule(match("/x", v="1", w="1"))),
        ],
        request("GET /x", "h"),
        ["b", "a", "404"],
    ),
    ("a path that is given decides the expression", [route("r", "~/v[0-9]+")], request("GET /v1", "h"), ["r"]),
    ("an expression may match", [route("r", "~/v[0-9]+", "/v1")], request("GET", "h"), ["r/1", "r", "404"]),
    (
        "an expression is tried on the paths that others name",
        [route("r", "GET =/v1", "~/v[0-9]+")],
        request("POST", "h"),
        ["r/1", "404"],
    ),
    (
        "a header that is present for some and absent for others",
        [route("r", rule(match(v="~.+")), rule(match(v="1")))],
        request("GET /", "h"),
        ["r", "404"],
    ),
    ("nothing is known", [route("r", "/a", hosts=["a.com"])], Request({}), ["r", "404"]),
]  # fmt: skip


@pytest.mark.parametrize(("_sentence", "routes", "asked", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_every_rule_that_could_be_chosen_is_named_in_order(
    _sentence: str, routes: list[Route], asked: Request, expected: list[str]
) -> None:
    assert route_names(routes, asked) == expected


def test_a_port_that_is_not_known_is_one_of_the_listeners() -> None:
    two = gateway(Listener("one", 80, "HTTP", "a.com"), Listener("two", 8080, "HTTP", "b.com"))
    routes = [route("a", hosts=["a.com"]), route("b", hosts=["b.com"])]
    assert route_names(routes, request("GET /", "a.com", 80), two) == ["a"]
    assert route_names(routes, request("GET /", "a.com", 8080), two) == ["404"]
    assert route_names(routes, request("GET /", "a.com"), two) == ["a", "404"]


def test_a_host_that_is_not_known_may_choose_any_listener() -> None:
    two = gateway(Listener("one", 80, "HTTP", "*.a.com"), Listener("two", 80, "HTTP", "x.a.com"))
    assert route_names([route("r", hosts=["x.a.com"])], request("GET /"), two) == ["r", "404"]
    assert route_names([route("r"), route("s", hosts=["*.com"])], request("GET /"), two) == ["s", "404"]


def test_headers_that_only_one_rule_looks_at_are_forgotten_after_it() -> None:
    """Otherwise there would be 3 to the power of 100 ways, and the search would give up for the simpler answer."""
    routes = [route(f"r{n:03}", rule(match("", **{f"a{n}": "1", f"b{n}": "1"}))) for n in range(100)]
    twins = [route("x", rule(match("", z="1"))), route("y", rule(match("", z="1")))]
    assert route_names([*routes, *twins], request("GET /", "h")) == [*(one.name for one in routes), "x", "404"]


def test_a_search_that_becomes_long_names_all_that_is_not_excluded() -> None:
    routes = [route("a", "/x"), route("b", "/x"), route("c", "/y"), route("d")]
    candidates = [one for each in routes for one in candidates_of(World(), GatewayNamed("ns", "gw"), "web", each, None)]
    entries = [Entry(one.when, one.routed.route.name) for one in sorted(candidates, key=lambda one: one.rank)]
    none = Entry(ALWAYS, "404")

    assert reachable([*entries, none], Request({}), Effort(1000)) == ["a", "c", "d"]
    assert reachable([*entries, none], Request({}), Effort(0)) == ["a", "b", "c", "d"]
    assert reachable([*entries[:-1], none], Request({}), Effort(0)) == ["a", "b", "c", "404"]
