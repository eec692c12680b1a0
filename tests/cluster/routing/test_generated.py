"""On generated gateways: the rule of the brute-force search; for unknown values, every rule for some value."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.cluster import (
    AllowedRoutes,
    Gateway,
    Listener,
    Namespace,
    ParentRef,
    PathMatch,
    PathType,
    Route,
    RouteMatch,
    RouteRule,
    RoutesFrom,
    Selector,
    ValueMatch,
    World,
)
from eastgate.ir import Known, Request
from eastgate.ir.attributes import HOST, METHOD, PATH, PORT, SNI, Attribute, header, query
from tests.cluster.routing import naive
from tests.cluster.routing.building import possible_routes

# Few names, so that they overlap; and for each attribute a value of every class that they distinguish.
HOSTNAMES = ["a.b.c", "b.c", "*.b.c", "*.c", "x.y"]
HOSTS = [*HOSTNAMES[:2], "z.b.c", "z.z.b.c", "z.c", "x.y", "c", None]
NAMED_PATHS, PREFIXES = ["/", "/a", "/a/", "/a/b", "/a/b/c", "/b", "/ab", "/a/ab"], ["/", "/a", "/a/", "/a/b", "/b"]
PATHS = [*NAMED_PATHS, "/z", "/a/z", "/a/b/z", "/b/z"]
METHODS = ["GET", "POST", "PUT"]
VALUES: list[Known] = ["1", "2", "3", None, ("1", "2"), ("3", "1")]
HEADERS = [header("v"), header("w")]
VALUED = [*HEADERS, query("v")]
PORTS = [80, 443]

listeners = st.builds(
    Listener,
    st.sampled_from(["one", "two", "three"]),
    st.sampled_from(PORTS),
    st.sampled_from(["HTTP", "HTTP", "HTTPS", "HTTPS", "TLS"]),
    st.sampled_from([None, None, None, None, *HOSTNAMES]),
    st.sampled_from(
        [
            AllowedRoutes(),
            AllowedRoutes(RoutesFrom.ALL),
            AllowedRoutes(RoutesFrom.ALL),
            AllowedRoutes(RoutesFrom.SELECTOR, Selector.of({"team": "blue"})),
        ]
    ),
)
gateways = st.lists(
    listeners,
    min_size=1,
    max_size=4,
    unique_by=(lambda one: one.name, lambda one: (one.port, one.protocol == "HTTP", one.hostname)),
).map(lambda found: Gateway("edge", "gw", tuple(found)))
paths = st.one_of(
    st.builds(PathMatch, st.just(PathType.EXACT), st.sampled_from(NAMED_PATHS)),
    st.builds(PathMatch, st.just(PathType.PREFIX), st.sampled_from(PREFIXES)),
)
expressions = st.builds(PathMatch, st.just(PathType.REGEX), st.sampled_from(["/a.*", "/[ab]", ".*b"]))
values = st.sampled_from(["1", "2"])


def valued(names: list[str], regex: st.SearchStrategy[bool]) -> st.SearchStrategy[tuple[ValueMatch, ...]]:
    one = st.builds(ValueMatch, st.sampled_from(names), values, regex)
    some = st.lists(one, max_size=2, unique_by=lambda match: match.name)
    return (st.just([]) | some).map(tuple)


def matches(*, expressions_too: bool) -> st.SearchStrategy[RouteMatch]:
    regex = st.booleans() if expressions_too else st.just(False)
    return st.builds(
        RouteMatch,
        paths | expressions if expressions_too else paths,
        st.sampled_from([None, None, "GET", "POST"]),
        valued(["v", "w"], regex),
        valued(["v"], regex),
    )


def routes(*, expressions_too: bool) -> st.SearchStrategy[list[Route]]:
    one = matches(expressions_too=expressions_too)
    rules = st.builds(RouteRule, st.lists(one, min_size=1, max_size=2).map(tuple))
    parents = st.builds(
        ParentRef,
        st.just("edge"),
        st.sampled_from(["gw", "gw", "gw", "other"]),
        section_name=st.sampled_from([None, None, None, "one"]),
        port=st.sampled_from([None, None, None, 80]),
    )
    found = st.builds(
        Route,
        st.just("HTTPRoute"),
        st.sampled_from(["edge", "edge", "shop"]),
        st.sampled_from(["r", "s", "t"]),
        st.sampled_from([(), ()]) | st.lists(st.sampled_from(HOSTNAMES), max_size=3).map(tuple),
        st.lists(parents, min_size=1, max_size=2).map(tuple),
        st.lists(rules, min_size=1, max_size=3).map(tuple),
        created=st.sampled_from([None, "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"]),
    )
    return st.lists(found, min_size=1, max_size=4, unique_by=lambda route: route.key)


POOLS: dict[Attribute, list[Known]] = {
    HOST: list(HOSTS),
    PATH: list(PATHS),
    METHOD: list(METHODS),
    **dict.fromkeys(VALUED, VALUES),
}
known = st.fixed_dictionaries({one: st.sampled_from(pool) for one, pool in POOLS.items()})


def world_of(routes: list[Route], blue: bool) -> World:
    return World.of([*routes, Namespace("shop", {"team": "blue"} if blue else {})])


def chosen_rules(world: World, gateway: Gateway, request: Request) -> list[tuple[str, int] | None]:
    return [None if one is None else (one.route.key, one.rule) for one in possible_routes(world, gateway, request)]


@settings(max_examples=250, deadline=None)
@given(
    gateways, routes(expressions_too=True), st.booleans(), known, st.integers(0, 3), st.sampled_from([..., ..., *HOSTS])
)
def test_a_wholly_known_request_takes_the_rule_that_brute_force_finds(
    gateway: Gateway,
    routes: list[Route],
    blue: bool,
    known: dict[Attribute, Known],
    listener: int,
    sni: object,
) -> None:
    """Mostly a request that some listener accepts, with the host for its SNI (...)."""
    world = world_of(routes, blue)
    port = gateway.listeners[min(listener, len(gateway.listeners) - 1)].port
    request = Request({**known, PORT: port, SNI: sni if sni is None or isinstance(sni, str) else known[HOST]})
    assert chosen_rules(world, gateway, request) == [naive.choose(world, gateway, request)]


def completed(
    world: World, gateway: Gateway, known: dict[Attribute, Known], unknown: list[Attribute]
) -> set[tuple[str, int] | None]:
    """The rules of all completions. An unknown port or SNI is one that the gateway answers to."""
    found: set[tuple[str, int] | None] = set()
    doors = {
        (one.port, one.protocol == "HTTP") for one in gateway.listeners if PORT not in known or one.port == known[PORT]
    }
    for values in product(*(POOLS[one] for one in unknown)):
        values_of: dict[Attribute, Known] = {**known, **dict(zip(unknown, values, strict=True))}
        for port, plain in doors:
            behind = tuple(one for one in gateway.listeners if one.port == port and (one.protocol == "HTTP") == plain)
            door = Gateway("edge", "gw", tuple(one for one in behind if one.protocol != "TLS"))
            sni = None if plain else values_of[HOST]
            found.add(naive.choose(world, door, Request({**values_of, PORT: port, SNI: sni})))
    return found or {None}


@settings(max_examples=150, deadline=None)
@given(
    gateways,
    routes(expressions_too=False),
    known,
    st.lists(st.sampled_from(list(POOLS)), min_size=1, max_size=3, unique=True),
    st.sampled_from([None, *PORTS]),
)
def test_what_is_possible_is_what_some_completion_takes(
    gateway: Gateway,
    routes: list[Route],
    known: dict[Attribute, Known],
    unknown: list[Attribute],
    port: int | None,
) -> None:
    world = world_of(routes, True)
    rest: dict[Attribute, Known] = {one: value for one, value in known.items() if one not in unknown}
    rest |= {PORT: port} if port else {}
    found = chosen_rules(world, gateway, Request(rest))
    assert len(found) == len(set(found))
    assert set(found) == completed(world, gateway, rest, unknown)


@settings(max_examples=80, deadline=None)
@given(
    gateways,
    routes(expressions_too=True),
    known,
    st.lists(st.sampled_from(list(POOLS)), min_size=1, max_size=3, unique=True),
)
def test_with_expressions_what_some_completion_takes_is_possible(
    gateway: Gateway, routes: list[Route], known: dict[Attribute, Known], unknown: list[Attribute]
) -> None:
    world = world_of(routes, True)
    rest: dict[Attribute, Known] = {one: value for one, value in known.items() if one not in unknown}
    assert set(chosen_rules(world, gateway, Request(rest))) >= completed(world, gateway, rest, unknown)
