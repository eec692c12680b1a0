"""Filters, timeouts and retries of routes, as a gateway needs them."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.cluster import (
    Cors,
    HeaderModifier,
    PathModifier,
    Redirect,
    Retry,
    Route,
    RouteFilter,
    RouteRule,
    Timeouts,
    UnsupportedFilter,
    UrlRewrite,
)
from tests.cluster.manifests import read

GATEWAY = "gateway.networking.k8s.io/v1"


def rule_of(**written: Any) -> RouteRule:
    route = read(GATEWAY, "HTTPRoute", "r", "shop", spec={"rules": [written]})
    assert isinstance(route, Route)
    (rule,) = route.rules
    return rule


FILTERS: list[tuple[dict[str, Any], RouteFilter]] = [
    (
        {
            "type": "RequestHeaderModifier",
            "requestHeaderModifier": {
                "set": [{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}],
                "add": [{"name": "b", "value": "c d"}],
                "remove": ["e"],
            },
        },
        HeaderModifier("RequestHeaderModifier", (("X-A", "1"),), (("b", "c d"),), ("e",)),
    ),
    (
        {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["server"]}},
        HeaderModifier("ResponseHeaderModifier", remove=("server",)),
    ),
    ({"type": "RequestRedirect", "requestRedirect": {}}, Redirect()),
    (
        {
            "type": "RequestRedirect",
            "requestRedirect": {
                "scheme": "https",
                "hostname": "a.com",
                "port": 8443,
                "statusCode": 308,
                "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": ""},
            },
        },
        Redirect("https", "a.com", PathModifier("", prefix=True), 8443, 308),
    ),
    (
        {
            "type": "URLRewrite",
            "urlRewrite": {"hostname": "a.com", "path": {"type": "ReplaceFullPath", "replaceFullPath": "/b"}},
        },
        UrlRewrite("a.com", PathModifier("/b")),
    ),
    (
        {
            "type": "CORS",
            "cors": {
                "allowOrigins": ["https://*.a.com"],
                "allowCredentials": True,
                "allowMethods": ["PUT"],
                "maxAge": 9,
            },
        },
        Cors(("https://*.a.com",), True, ("PUT",), max_age=9),
    ),
    (
        {"type": "ExtensionRef", "extensionRef": {"group": "a", "kind": "b", "name": "c"}},
        UnsupportedFilter("ExtensionRef"),
    ),
]


@pytest.mark.parametrize(("written", "expected"), FILTERS)
def test_a_filter_of_a_rule_and_of_a_backend(written: dict[str, Any], expected: RouteFilter) -> None:
    assert rule_of(filters=[written]).filters == (expected,)
    (backend,) = rule_of(backendRefs=[{"name": "a", "port": 80, "filters": [written]}]).backends
    assert backend.filters == (expected,)


def changes(name: str) -> dict[str, Any]:
    return {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": name, "value": "a"}]}}


def rewrites(value: str) -> dict[str, Any]:
    return {"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplaceFullPath", "replaceFullPath": value}}}


UNSUPPORTED: list[tuple[dict[str, Any], str, bool]] = [
    # a filter, its message, and whether it may refuse requests
    ({"type": "RequestMirror", "requestMirror": {}}, "filter RequestMirror", False),
    ({"type": "ExternalAuth", "externalAuth": {}}, "filter ExternalAuth", True),
    ({"type": "ExtensionRef", "extensionRef": {}}, "filter ExtensionRef", True),
    ({"type": "Tomorrow"}, "filter Tomorrow", True),
    (changes("Host"), "RequestHeaderModifier of the header Host", False),
    (changes("Transfer-Encoding"), "RequestHeaderModifier of the header Transfer-Encoding", False),
    (changes("X-Eastgate-Target"), "RequestHeaderModifier of the header X-Eastgate-Target", False),
    (rewrites("a"), "URLRewrite to the path a", False),
    (rewrites("/a?b=c"), "URLRewrite to the path /a?b=c", False),
    (rewrites("/a#b"), "URLRewrite to the path /a#b", False),
    (changes("x-envoy-original-path"), "RequestHeaderModifier of the header x-envoy-original-path", False),
]


@pytest.mark.parametrize(("written", "what", "may_refuse"), UNSUPPORTED, ids=[row[1] for row in UNSUPPORTED])
def test_what_the_gateway_cannot_do_closes_the_rule_or_the_backend(
    written: dict[str, Any], what: str, may_refuse: bool
) -> None:
    (problem,) = rule_of(filters=[written]).unsupported
    assert (problem.what, problem.may_refuse) == (what, may_refuse)
    rule = rule_of(backendRefs=[{"name": "a", "port": 80, "filters": [written]}])
    assert rule.unsupported == ()
    assert [each.what for each in rule.backends[0].unsupported] == [what]


def test_session_persistence_is_not_supported() -> None:
    (problem,) = rule_of(sessionPersistence={"type": "Header"}).unsupported
    assert (problem.what, problem.may_refuse) == ("sessionPersistence", False)


def test_what_can_be_done_closes_nothing() -> None:
    assert rule_of(filters=[changes("x-a")]).unsupported == ()
    assert rule_of().unsupported == ()


DURATIONS = [("10s", 10_000), ("1h2m3s4ms", 3_723_004), ("0s", 0), ("500ms", 500)]


@pytest.mark.parametrize(("written", "milliseconds"), DURATIONS)
def test_durations_are_in_milliseconds(written: str, milliseconds: int) -> None:
    assert rule_of(timeouts={"backendRequest": written}).timeouts == Timeouts(None, milliseconds)


def test_a_retry() -> None:
    assert rule_of(retry={"codes": [500, 503], "attempts": 3, "backoff": "1s"}).retry == Retry((500, 503), 3, 1000)
    assert rule_of(retry={}).retry == Retry()
    assert rule_of().retry is None


def test_the_name_of_a_rule() -> None:
    assert rule_of(name="a").name == "a"
