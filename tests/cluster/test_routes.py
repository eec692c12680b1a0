"""The content of HTTPRoutes, GRPCRoutes and listeners, with Gateway API's defaults."""

from __future__ import annotations

import pytest

from eastgate.cluster import (
    AllowedRoutes,
    Cors,
    Gateway,
    GrpcMatch,
    GrpcRule,
    Operator,
    PathMatch,
    PathType,
    Redirect,
    Requirement,
    Route,
    RouteBackend,
    RouteMatch,
    RouteRule,
    RoutesFrom,
    Selector,
    Unsupported,
    UnsupportedFilter,
    UrlRewrite,
    ValueMatch,
    matches_pattern,
    pattern_problem,
)
from tests.cluster.manifests import read

GATEWAY = "gateway.networking.k8s.io/v1"


def rules_of(**spec: object) -> tuple[RouteRule, ...]:
    found = read(GATEWAY, "HTTPRoute", "r", "shop", spec=spec)
    assert isinstance(found, Route)
    assert found.stream_rules == ()
    return found.rules


def match_of(**match: object) -> RouteMatch:
    ((found,),) = (rule.matches for rule in rules_of(rules=[{"matches": [match]}]))
    return found


RULES: list[tuple[str, dict[str, object], tuple[RouteRule, ...]]] = [
    ("no rules are one for everything", {}, (RouteRule(),)),
    ("an empty list has none", {"rules": []}, ()),
    ("a rule without matches is for everything", {"rules": [{}, {"matches": []}]}, (RouteRule(), RouteRule())),
    (
        "rules and matches keep their order",
        {"rules": [{"matches": [{"method": "PUT"}, {"method": "GET"}]}, {"matches": [{"method": "POST"}]}]},
        (RouteRule((RouteMatch(method="PUT"), RouteMatch(method="GET"))), RouteRule((RouteMatch(method="POST"),))),
    ),
    (
        "a redirect answers",
        {"rules": [{"filters": [{"type": "CORS", "cors": {}}, {"type": "RequestRedirect", "requestRedirect": {}}]}]},
        (RouteRule(filters=(Cors(), Redirect())),),
    ),
    (
        "other filters do not",
        {"rules": [{"filters": [{"type": "URLRewrite", "urlRewrite": {}}]}]},
        (RouteRule(filters=(UrlRewrite(),)),),
    ),
]


@pytest.mark.parametrize(("_sentence", "spec", "expected"), RULES, ids=[row[0] for row in RULES])
def test_rules(_sentence: str, spec: dict[str, object], expected: tuple[RouteRule, ...]) -> None:
    assert rules_of(**spec) == expected


def test_only_a_redirect_answers_in_the_place_of_a_backend() -> None:
    assert RouteRule(filters=(Cors(), Redirect())).redirects
    assert not RouteRule(filters=(UrlRewrite(), UnsupportedFilter("RequestMirror"))).redirects
    assert not RouteRule().redirects


def grpc_rules_of(**spec: object) -> tuple[GrpcRule, ...]:
    found = read(GATEWAY, "GRPCRoute", "r", "shop", spec=spec)
    assert isinstance(found, Route)
    assert (found.rules, found.stream_rules) == ((), ())
    return found.grpc_rules


def calls(**match: object) -> dict[str, object]:
    return {"rules": [{"matches": [match]}]}


GRPC_RULES: list[tuple[str, dict[str, object], tuple[GrpcRule, ...]]] = [
    ("no rules are none", {}, ()),
    ("a rule without matches is for everything", {"rules": [{}, {"matches": []}]}, (GrpcRule(), GrpcRule())),
    ("so is a match that says nothing", calls(), (GrpcRule((GrpcMatch(),)),)),
    (
        "a service and a method",
        calls(method={"service": "a.v1.B", "method": "Get"}),
        (GrpcRule((GrpcMatch("a.v1.B", "Get"),)),),
    ),
    ("a service", calls(method={"type": "Exact", "service": ".A_1"}), (GrpcRule((GrpcMatch(".A_1"),)),)),
    ("a method", calls(method={"service": None, "method": "_get"}), (GrpcRule((GrpcMatch(None, "_get"),)),)),
    (
        "expressions",
        calls(method={"type": "RegularExpression", "service": "a[.].*", "method": "Get|Put"}),
        (GrpcRule((GrpcMatch("a[.].*", "Get|Put", regex=True),)),),
    ),
    (
        "headers",
        calls(headers=[{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}]),
        (GrpcRule((GrpcMatch(headers=(ValueMatch("x-a", "1"),)),)),),
    ),
    (
        "rules, matches and filters keep their order",
        {
            "rules": [
                {"matches": [{"method": {"method": "B"}}, {"method": {"method": "A"}}]},
                {"filters": [{"type": "RequestMirror", "requestMirror": {}}, {"type": "Future"}]},
            ]
        },
        (
            GrpcRule((GrpcMatch(method="B"), GrpcMatch(method="A"))),
            GrpcRule(
                filters=(UnsupportedFilter("RequestMirror"), UnsupportedFilter("Future")),
                unsupported=(
                    Unsupported("filter RequestMirror"),
                    Unsupported("filter Future", may_refuse=True),
                ),
            ),
        ),
    ),
]


@pytest.mark.parametrize(("_sentence", "spec", "expected"), GRPC_RULES, ids=[row[0] for row in GRPC_RULES])
def test_rules_of_a_grpc_route(_sentence: str, spec: dict[str, object], expected: tuple[GrpcRule, ...]) -> None:
    assert grpc_rules_of(**spec) == expected


PATHS: list[tuple[object, PathMatch]] = [
    (None, PathMatch(PathType.PREFIX, "/")),
    ({}, PathMatch(PathType.PREFIX, "/")),
    ({"value": "/a"}, PathMatch(PathType.PREFIX, "/a")),
    ({"type": "Exact"}, PathMatch(PathType.EXACT, "/")),
    ({"type": "Exact", "value": "/a/"}, PathMatch(PathType.EXACT, "/a/")),
    ({"type": "RegularExpression", "value": "/a|//b"}, PathMatch(PathType.REGEX, "/a|//b")),
    ({"value": "/%7Eme"}, PathMatch(PathType.PREFIX, "/%7Eme")),
    ({"value": "/a%20b"}, PathMatch(PathType.PREFIX, "/a%20b")),
]


@pytest.mark.parametrize(("written", "expected"), PATHS)
def test_a_path_is_a_prefix_by_default_and_is_kept_as_it_is_written(written: object, expected: PathMatch) -> None:
    assert match_of(path=written).path == expected


def test_of_two_headers_of_one_name_the_first_counts_and_case_does_not() -> None:
    headers = [
        {"name": "X-A", "value": "1"},
        {"name": "x-a", "value": "2"},
        {"name": "b", "value": "3", "type": "Exact"},
    ]
    assert match_of(headers=headers).headers == (ValueMatch("x-a", "1"), ValueMatch("b", "3"))


def test_the_names_of_query_parameters_have_a_case() -> None:
    parameters = [{"name": "A", "value": "1"}, {"name": "a", "value": "[0-9]", "type": "RegularExpression"}]
    assert match_of(queryParams=parameters).query == (ValueMatch("A", "1"), ValueMatch("a", "[0-9]", regex=True))


BACKENDS: list[tuple[dict[str, object], RouteBackend]] = [
    ({"name": "a", "port": 80}, RouteBackend("shop", "a", "", "Service", 80, 1)),
    ({"name": "a", "port": 80, "weight": 0, "namespace": "b"}, RouteBackend("b", "a", port=80, weight=0)),
    ({"name": "a", "group": "x.io", "kind": "XBackend"}, RouteBackend("shop", "a", "x.io", "XBackend")),
    ({"name": "a", "group": None, "kind": None, "port": 1, "weight": None}, RouteBackend("shop", "a", port=1)),
]


@pytest.mark.parametrize(("written", "expected"), BACKENDS)
def test_a_backend_is_by_default_a_service_of_the_routes_own_namespace(
    written: dict[str, object], expected: RouteBackend
) -> None:
    ((found,),) = (rule.backends for rule in rules_of(rules=[{"backendRefs": [written]}]))
    assert found == expected


def test_a_route_knows_when_it_was_created() -> None:
    midnight = "2020-01-01T00:00:00.000000+00:00"
    for written, created in (
        ("2020-01-01T00:00:00Z", midnight),
        ("2020-01-01T02:00:00+02:00", midnight),
        ("2020-01-01T00:00:00.5Z", "2020-01-01T00:00:00.500000+00:00"),
        ("yesterday", None),
        (None, None),
    ):
        found = read(GATEWAY, "HTTPRoute", "r", metadata={"creationTimestamp": written})
        assert isinstance(found, Route)
        assert found.created == created


TERMS = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}]}
SELECTOR = Selector.of({"a": "b"}, [Requirement("c", Operator.NOT_IN, frozenset({"d"}))])
ALLOWED: list[tuple[object, AllowedRoutes]] = [
    (None, AllowedRoutes(RoutesFrom.SAME)),
    ({}, AllowedRoutes()),
    ({"namespaces": {}}, AllowedRoutes()),
    ({"namespaces": {"from": "All"}}, AllowedRoutes(RoutesFrom.ALL)),
    ({"namespaces": {"from": "Selector", "selector": TERMS}}, AllowedRoutes(RoutesFrom.SELECTOR, SELECTOR)),
    ({"namespaces": {"from": "Selector", "selector": {}}}, AllowedRoutes(RoutesFrom.SELECTOR, Selector())),
    ({"namespaces": {"from": "Same", "selector": {"unread": 1}}}, AllowedRoutes()),
    (
        {"kinds": [{"kind": "HTTPRoute"}, {"group": "", "kind": "X"}]},
        AllowedRoutes(kinds=(("gateway.networking.k8s.io", "HTTPRoute"), ("", "X"))),
    ),
]


@pytest.mark.parametrize(("written", "expected"), ALLOWED)
def test_a_listener_allows_by_default_routes_of_its_own_namespace(written: object, expected: AllowedRoutes) -> None:
    listener = {"name": "a", "port": 80, "protocol": "HTTP", "allowedRoutes": written}
    found = read(GATEWAY, "Gateway", "g", spec={"listeners": [listener]})
    assert isinstance(found, Gateway)
    assert found.listeners[0].allowed_routes == expected


def test_an_expression_matches_all_of_a_text_or_nothing_and_never_takes_long() -> None:
    assert matches_pattern("a.c", "abc")
    assert not matches_pattern("a.c", "abcd")
    assert not matches_pattern("(a+)+$", "a" * 100_000 + "b")
    assert not matches_pattern("(", "(")
    assert not matches_pattern("a", "a\udc80")
    assert pattern_problem("[a-z]+") is None
