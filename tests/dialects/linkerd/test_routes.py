"""A request takes the route that the proxy chooses as the best match."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eastgate.cluster import (
    GATEWAY_GROUP,
    GrpcMatch,
    GrpcRule,
    HeaderModifier,
    ParentRef,
    PathMatch,
    PathType,
    Redirect,
    RouteMatch,
    RouteRule,
    UnsupportedFilter,
    UrlRewrite,
    ValueMatch,
)
from eastgate.dialects.linkerd.model import GROUP, InboundRoute
from eastgate.dialects.linkerd.routes import match_predicates, route_cases, usable_routes
from eastgate.engine.reference import holds
from eastgate.ir import Known, Request
from eastgate.ir.attributes import HOST, METHOD, PATH, SENT_PATH, Attribute, header, query
from eastgate.settings import DataPlane

WEB = ParentRef("shop", "web", GROUP, "Server")


def route(name: str, *matches: RouteMatch, hosts: tuple[str, ...] = (), created: str | None = None) -> InboundRoute:
    return InboundRoute(GROUP, "HTTPRoute", "shop", name, (WEB,), hosts, (RouteRule(matches),), created=created)


def exact(path: str) -> RouteMatch:
    return RouteMatch(PathMatch(PathType.EXACT, path))


def prefix(path: str) -> RouteMatch:
    return RouteMatch(PathMatch(PathType.PREFIX, path))


def pattern(path: str) -> RouteMatch:
    return RouteMatch(PathMatch(PathType.REGEX, path))


A, B = ValueMatch("a", "1"), ValueMatch("b", "1")


def request(path: str = "/a", method: str = "GET", host: str | None = "x.example.com", **values: str) -> Request:
    """Return a request with the given values of the headers `a` and `b` and the query parameters `q` and `r`."""
    known: dict[Attribute, Known] = {PATH: path, SENT_PATH: path, METHOD: method, HOST: host}
    known |= {header(name): values.get(name) for name in ("a", "b")}
    known |= {query(name): values.get(name) for name in ("q", "r")}
    return Request(known)


def taken(routes: list[InboundRoute], asked: Request) -> str | None:
    """Return the route that Linkerd's proxy takes. Eastgate's proxy takes the same one if the path is canonical."""
    native, ours = (
        next(
            (case.route.name for case in route_cases(routes, match_predicates(plane)) if holds(case.when, asked)), None
        )
        for plane in DataPlane
    )
    assert native == ours
    return native


EVERYTHING = route("everything", RouteMatch())
# Routes, the older first; a request; the route that it takes
CHOICES: list[tuple[str, list[InboundRoute], Request, str | None]] = [
    ("nothing", [], request(), None),
    ("a longer prefix", [EVERYTHING, route("a", prefix("/a"))], request("/a/b"), "a"),
    ("a prefix of whole segments", [EVERYTHING, route("a", prefix("/a"))], request("/ab"), "everything"),
    ("a trailing slash of a prefix does not count", [route("a", prefix("/a/"))], request("/a"), "a"),
    ("nor does it make it longer", [route("a", prefix("/a")), route("b", prefix("/a/"))], request("/a/b"), "a"),
    ("exact over a prefix of a part", [route("p", prefix("/a")), route("e", exact("/a/b"))], request("/a/b"), "e"),
    ("exact ties with a prefix that is all", [route("p", prefix("/a")), route("e", exact("/a"))], request("/a"), "p"),
    ("exact ties with a pattern", [route("r", pattern("/.*")), route("e", exact("/a"))], request("/a"), "r"),
    ("a pattern spans the path", [EVERYTHING, route("r", pattern("/a"))], request("/a/b"), "everything"),
    ("a pattern over a prefix", [route("p", prefix("/a")), route("r", pattern("/.*"))], request("/a/b"), "r"),
    ("/ ties at /", [EVERYTHING, route("e", exact("/"))], request("/"), "everything"),
    (
        "a path over a method",
        [route("m", RouteMatch(method="GET")), route("p", prefix("/a"))],
        request("/a/b"),
        "p",
    ),
    ("a method over none", [EVERYTHING, route("m", RouteMatch(method="GET"))], request(), "m"),
    (
        "headers over a method",
        [route("m", RouteMatch(method="GET")), route("h", RouteMatch(headers=(A,)))],
        request(a="1"),
        "h",
    ),
    (
        "query over a method",
        [route("m", RouteMatch(method="GET")), route("q", RouteMatch(query=(ValueMatch("q", "1"),)))],
        request(q="1"),
        "q",
    ),
    (
        "more headers",
        [route("one", RouteMatch(headers=(A,))), route("two", RouteMatch(headers=(A, B)))],
        request(a="1", b="1"),
        "two",
    ),
    (
        "headers over query",
        [
            route("q", RouteMatch(query=(ValueMatch("q", "1"), ValueMatch("r", "1")))),
            route("h", RouteMatch(headers=(A,))),
        ],
        request(a="1", q="1", r="1"),
        "h",
    ),
    (
        "a host over a path",
        [route("p", exact("/a")), route("h", RouteMatch(), hosts=("x.example.com",))],
        request(),
        "h",
    ),
    (
        "an exact host over a suffix",
        [route("s", exact("/a"), hosts=("*.example.com",)), route("h", RouteMatch(), hosts=("x.example.com",))],
        request(),
        "h",
    ),
    (
        "a longer suffix",
        [route("s", exact("/a"), hosts=("*.com",)), route("l", RouteMatch(), hosts=("*.example.com",))],
        request(),
        "l",
    ),
    ("a suffix is not the domain itself", [route("s", RouteMatch(), hosts=("*.x.example.com",))], request(), None),
    ("a host needs an authority", [route("h", RouteMatch(), hosts=("x.example.com",))], request(host=None), None),
    ("the older where all is equal", [route("z", exact("/a")), route("a", exact("/a"))], request(), "z"),
    ("no rule that matches", [route("e", exact("/b"))], request(), None),
    ("a route without rules", [replace(EVERYTHING, rules=())], request(), None),
]


@pytest.mark.parametrize(("routes", "asked", "name"), [row[1:] for row in CHOICES], ids=[row[0] for row in CHOICES])
def test_the_best_match_takes_a_request(routes: list[InboundRoute], asked: Request, name: str | None) -> None:
    assert taken(routes, asked) == name


# gRPC


def grpc(name: str, *matches: GrpcMatch, hosts: tuple[str, ...] = ()) -> InboundRoute:
    rules = (GrpcRule(matches),)
    return InboundRoute(GATEWAY_GROUP, "GRPCRoute", "shop", name, (WEB,), hosts, grpc_rules=rules)


def call(path: str = "/shop.Cart/Add", method: str = "POST", **values: str) -> Request:
    return request(path, method, **values)


CART, ADD = GrpcMatch("shop.Cart"), GrpcMatch(method="Add")
GRPC_CHOICES: list[tuple[str, list[InboundRoute], Request, str | None]] = [
    ("a rule without matches", [grpc("any")], call(), "any"),
    ("even of what is no call", [grpc("any")], request("/", "GET"), "any"),
    ("a match without anything wants a call", [grpc("any", GrpcMatch())], request("/a/b", "GET"), None),
    ("and a path of two parts", [grpc("any", GrpcMatch())], call("/a"), None),
    ("a service over a method", [grpc("m", ADD), grpc("s", CART)], call(), "s"),
    ("both over one", [grpc("s", CART), grpc("b", GrpcMatch("shop.Cart", "Add"))], call(), "b"),
    ("a method over none", [grpc("any", GrpcMatch()), grpc("m", ADD)], call(), "m"),
    ("a method over headers", [grpc("h", GrpcMatch(headers=(A,))), grpc("m", ADD)], call(a="1"), "m"),
    ("headers over none", [grpc("m", ADD), grpc("h", replace(ADD, headers=(A,)))], call(a="1"), "h"),
    ("another service", [grpc("s", CART)], call("/shop.CartX/Add"), None),
    ("another method", [grpc("m", ADD)], call("/shop.Cart/AddAll"), None),
    ("the older where all is equal", [grpc("z", CART), grpc("a", CART)], call(), "z"),
    ("a host over a service", [grpc("s", CART), grpc("h", GrpcMatch(), hosts=("*.example.com",))], call(), "h"),
]


@pytest.mark.parametrize(
    ("routes", "asked", "name"), [row[1:] for row in GRPC_CHOICES], ids=[row[0] for row in GRPC_CHOICES]
)
def test_the_best_match_takes_a_call(routes: list[InboundRoute], asked: Request, name: str | None) -> None:
    assert taken(routes, asked) == name


# Attachment


@pytest.mark.parametrize(
    ("changed", "attached"),
    [
        (EVERYTHING, True),
        (replace(EVERYTHING, parents=(ParentRef("shop", "web", GROUP.upper(), "server"),)), True),
        (replace(EVERYTHING, parents=(ParentRef("shop", "gw"), WEB)), True),
        (replace(EVERYTHING, parents=(replace(WEB, name="other"), WEB)), True),
        (replace(EVERYTHING, parents=()), False),
        (replace(EVERYTHING, parents=(replace(WEB, name="other"),)), False),
        (replace(EVERYTHING, parents=(replace(WEB, group=GATEWAY_GROUP),)), False),
        # if Linkerd cannot use one parent, it drops the whole route
        (replace(EVERYTHING, parents=(replace(WEB, namespace="pay"), WEB)), False),
        (replace(EVERYTHING, parents=(replace(WEB, name="other", port=80), WEB)), False),
        (replace(EVERYTHING, parents=(replace(WEB, section_name="a"),)), False),
        (replace(EVERYTHING, rules=(RouteRule(filters=(Redirect(), HeaderModifier(HeaderModifier.REQUEST))),)), True),
        (replace(EVERYTHING, rules=(RouteRule(), RouteRule(filters=(UrlRewrite(),)))), False),
        (replace(EVERYTHING, rules=(RouteRule(filters=(UnsupportedFilter("RequestMirror"),)),)), False),
        (replace(EVERYTHING, rules=(RouteRule(filters=(UnsupportedFilter("ExtensionRef"),)),)), False),
    ],
)
def test_a_route_is_attached_to_its_server_unless_linkerd_drops_it(changed: InboundRoute, attached: bool) -> None:
    assert usable_routes([changed], "web", "HTTPRoute") == ([changed] if attached else [])


def test_a_call_matched_by_an_expression_drops_its_route() -> None:
    assert usable_routes([grpc("r", GrpcMatch("shop.*", regex=True))], "web", "GRPCRoute") == []
    assert len(usable_routes([grpc("r", CART)], "web", "GRPCRoute")) == 1


def test_where_a_grpc_route_is_attached_http_routes_are_not() -> None:
    routes = [EVERYTHING, grpc("g", CART)]
    assert usable_routes(routes, "web", "HTTPRoute") == []
    assert [one.name for one in usable_routes(routes, "web", "GRPCRoute")] == ["g"]
    elsewhere = replace(grpc("g", CART), parents=(replace(WEB, name="other"),))
    assert usable_routes([EVERYTHING, elsewhere], "web", "HTTPRoute") == [EVERYTHING]


def test_routes_are_in_the_order_of_age_then_name_then_group() -> None:
    dated = [route(name, created=f"2026-01-0{day}T00:00:00Z") for name, day in (("c", 1), ("b", 2), ("a", 3))]
    undated = [route("a"), replace(route("b"), group=GATEWAY_GROUP), route("b")]
    mixed = [undated[2], dated[2], undated[1], dated[0], undated[0], dated[1]]
    assert usable_routes(mixed, "web", "HTTPRoute") == [*dated, *undated]


# Generated routes, with a simple implementation of the proxy's choice


def proxy_choice(routes: list[InboundRoute], asked: Request) -> str | None:
    """Return the route with the greatest key; the first of equal ones."""
    best: tuple[tuple[object, ...], str] | None = None
    for one in routes:
        hosts = [found for host in one.hostnames if (found := _host(host, asked.values[HOST])) is not None]
        if one.hostnames and not hosts:
            continue
        host = max(hosts, default=(0, 0))
        for summary in _summaries(one, asked):
            if best is None or (host, *summary) > best[0]:
                best = (host, *summary), one.name
    return best[1] if best is not None else None


def _host(pattern: str, host: Known) -> tuple[int, int] | None:
    if pattern.startswith("*."):
        return (1, len(pattern)) if str(host).endswith(pattern[1:]) else None
    return (2, len(pattern)) if host == pattern else None


def _summaries(one: InboundRoute, asked: Request) -> list[tuple[object, ...]]:
    if one.kind == "GRPCRoute":
        found = [_grpc(match, asked) for rule in one.grpc_rules for match in rule.matches]
        return [*(s for s in found if s), *((0, 0, 0) for rule in one.grpc_rules if not rule.matches)]
    return [s for rule in one.rules for match in rule.matches if (s := _http(match, asked)) is not None]


def _http(match: RouteMatch, asked: Request) -> tuple[object, ...] | None:
    path = str(asked.values[PATH])
    length = _path(match.path, path)
    if length is None or (match.method is not None and match.method != asked.values[METHOD]):
        return None
    if not all(asked.values[header(one.name)] == one.value for one in match.headers):
        return None
    if not all(asked.values[query(one.name)] == one.value for one in match.query):
        return None
    return length, len(match.headers), len(match.query), match.method is not None


def _path(match: PathMatch, path: str) -> int | None:
    if match.type is PathType.EXACT:
        return len(path) if path == match.value else None
    if match.type is PathType.REGEX:
        return len(path) if re.fullmatch(match.value, path) else None
    wanted = match.value.rstrip("/")
    return (len(wanted) or 1) if path == wanted or path.startswith(f"{wanted}/") else None


def _grpc(match: GrpcMatch, asked: Request) -> tuple[object, ...] | None:
    parts = str(asked.values[PATH]).split("/")
    if asked.values[METHOD] != "POST" or len(parts) < 3:
        return None
    if match.service not in (None, parts[1]) or match.method not in (None, parts[2]):
        return None
    if not all(asked.values[header(one.name)] == one.value for one in match.headers):
        return None
    return len(match.service or ""), len(match.method or ""), len(match.headers)


VALUES = [ValueMatch("a", "1"), ValueMatch("b", "1"), ValueMatch("b", "2")]
HOSTS = ["x.example.com", "y.example.com", "*.example.com", "*.com", "*.x.example.com"]
paths = st.one_of(
    st.builds(PathMatch, st.just(PathType.EXACT), st.sampled_from(["/", "/a", "/a/", "/a/b"])),
    st.builds(PathMatch, st.just(PathType.PREFIX), st.sampled_from(["/", "/a", "/a/", "/a/b", "/a/b/", "/b"])),
    st.builds(PathMatch, st.just(PathType.REGEX), st.sampled_from(["/.*", "/a(/b)?", "/[ab]"])),
)
headers = st.lists(st.sampled_from(VALUES), max_size=2, unique_by=lambda one: one.name).map(tuple)
queries = st.lists(st.sampled_from([ValueMatch("q", "1"), ValueMatch("r", "1")]), max_size=2, unique=True).map(tuple)
http_matches = st.builds(RouteMatch, paths, st.sampled_from([None, "GET", "POST"]), headers, queries)
grpc_matches = st.builds(GrpcMatch, st.sampled_from([None, "a", "bb"]), st.sampled_from([None, "b", "cc"]), headers)
hosts = st.lists(st.sampled_from(HOSTS), max_size=2, unique=True).map(tuple)


@st.composite
def http_routes(draw: st.DrawFn) -> list[InboundRoute]:
    rules = st.lists(st.lists(http_matches, min_size=1, max_size=2).map(lambda m: RouteRule(tuple(m))), max_size=2)
    drawn = draw(st.lists(st.tuples(hosts, rules.map(tuple)), max_size=4))
    return [replace(route(f"r{n}"), hostnames=names, rules=rules) for n, (names, rules) in enumerate(drawn)]


@st.composite
def grpc_routes(draw: st.DrawFn) -> list[InboundRoute]:
    rules = st.lists(st.lists(grpc_matches, max_size=2).map(lambda m: GrpcRule(tuple(m))), max_size=2)
    drawn = draw(st.lists(st.tuples(hosts, rules.map(tuple)), max_size=4))
    return [replace(grpc(f"r{n}"), hostnames=names, grpc_rules=rules) for n, (names, rules) in enumerate(drawn)]


@dataclass(frozen=True)
class Asked:
    """The attributes of a generated request."""

    path: str
    method: str
    host: str | None
    values: tuple[tuple[str, str], ...] = ()

    @property
    def request(self) -> Request:
        return request(self.path, self.method, self.host, **dict(self.values))


asked = st.builds(
    Asked,
    st.sampled_from(["/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/b", "/bb/cc", "/bb/b"]),
    st.sampled_from(["GET", "POST"]),
    st.sampled_from(["x.example.com", "y.example.com", "a.x.example.com", "example.com", None]),
    st.dictionaries(st.sampled_from("abqr"), st.sampled_from("12")).map(lambda drawn: tuple(sorted(drawn.items()))),
)


@given(http_routes(), asked)
@example([route("p", prefix("/a")), route("e", exact("/a"))], Asked("/a", "GET", None))
def test_the_first_door_is_the_proxys_best_match(routes: list[InboundRoute], asked: Asked) -> None:
    assert taken(routes, asked.request) == proxy_choice(routes, asked.request)


@given(grpc_routes(), asked)
def test_the_first_door_of_a_call_is_the_proxys_best_match(routes: list[InboundRoute], asked: Asked) -> None:
    assert taken(routes, asked.request) == proxy_choice(routes, asked.request)
