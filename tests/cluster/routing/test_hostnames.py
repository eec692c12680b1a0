"""A host chooses the listener and the hostname that is most specific for it."""

from __future__ import annotations

import pytest

from eastgate.cluster import Listener, ParentRef
from eastgate.cluster.routing.hostnames import comparable, hostnames_of, intersect, sample_host, specificity
from tests.cluster.routing.building import gateway, request, route, route_names

HOSTS: list[tuple[str, str, bool]] = [
    # a hostname, a host, whether the hostname matches the host
    ("www.example.com", "www.example.com", True),
    ("www.example.com", "WWW.Example.COM", True),
    ("www.example.com", "www.example.com:8443", True),
    ("www.example.com", "www.example.com.", True),
    ("www.example.com", "example.com", False),
    ("*.example.com", "www.example.com", True),
    ("*.example.com", "a.b.example.com", True),
    ("*.example.com", "example.com", False),
    ("*.example.com", ".example.com", False),
    ("*.example.com", "wwwexample.com", False),
    ("*.example.com", "www.example.com.evil.org", False),
    ("*.com", "a.b.example.com:80", True),
    ("*.example.com", "x" * 300 + ".example.com", True),
]


@pytest.mark.parametrize(("hostname", "host", "meant"), HOSTS)
def test_a_wildcard_means_one_or_more_labels_and_not_the_domain_itself(hostname: str, host: str, meant: bool) -> None:
    assert route_names([route("r", hosts=[hostname])], request("GET /", host)) == (["r"] if meant else ["404"])
    only = gateway(Listener("only", 80, "HTTP", hostname))
    assert route_names([route("r")], request("GET /", host), only) == (["r"] if meant else ["404"])


def test_a_request_without_a_host_is_for_those_who_name_none() -> None:
    routes = [route("any"), route("one", hosts=["a.com", "*.com"])]
    assert route_names(routes, request("GET /", None)) == ["any"]
    assert route_names(routes, request("GET /", "")) == ["any"]


def test_hostnames_come_in_the_order_of_their_specificity() -> None:
    names = list(hostnames_of("a.b.example.com"))
    assert names == ["a.b.example.com", "*.b.example.com", "*.example.com", "*.com", None]
    assert sorted(names, key=specificity, reverse=True) == names


def test_the_hosts_that_are_tried_stand_for_all_hosts() -> None:
    names = ["a.example.com", "*.example.com", "*.b.example.com", "example.com", None]
    seen = {frozenset(hostnames_of(host)) & set(names) for host in map(sample_host, [None, *names])}
    some = ["a.example.com", "x.example.com", "x.b.example.com", "b.example.com", "example.com", "x.org", None]
    assert {frozenset(hostnames_of(host)) & set(names) for host in some} == seen


def test_what_is_compared_has_one_form() -> None:
    assert [comparable(host) for host in ("A.com.", "", None)] == ["a.com", None, None]


# The tables of Gateway API's own conformance suite (GatewayHTTPListenerIsolation), with hostnames on the listeners
# only, and with hostnames on the routes too, where they would overlap.
NAMES = {"empty": None, "wild": "*.example.com", "foo": "*.foo.example.com", "abc": "abc.foo.example.com"}
LISTENERS = gateway(*(Listener(name, 80, "HTTP", hostname) for name, hostname in NAMES.items()))
OVERLAPPING = ("bar.com", "*.example.com", "*.foo.example.com", "abc.foo.example.com")


@pytest.mark.parametrize("hosts", [(), OVERLAPPING])
@pytest.mark.parametrize(
    ("host", "listener"),
    [("bar.com", "empty"), ("bar.example.com", "wild"), ("bar.foo.example.com", "foo"), ("abc.foo.example.com", "abc")],
)
@pytest.mark.parametrize("path", NAMES)
def test_only_the_routes_of_the_most_specific_listener_count(
    hosts: tuple[str, ...], host: str, listener: str, path: str
) -> None:
    routes = [
        route(name, f"/{name}", hosts=hosts, parents=(ParentRef("edge", "gw", section_name=name),)) for name in NAMES
    ]
    assert route_names(routes, request(f"GET /{path}", host), LISTENERS) == ([path] if path == listener else ["404"])


def test_a_more_specific_hostname_goes_before_a_longer_path() -> None:
    routes = [
        route("any", "=/a/b"),
        route("wild", "/a/b", hosts=["*.example.com"]),
        route("exact", "/a", hosts=["x.example.com"]),
    ]
    assert route_names(routes, request("GET /a/b", "x.example.com")) == ["exact"]
    assert route_names(routes, request("GET /a/b", "y.example.com")) == ["wild"]
    assert route_names(routes, request("GET /a/b", "example.com")) == ["any"]


def test_where_the_more_specific_hostname_has_no_rule_the_next_one_is_asked() -> None:
    routes = [
        route("any"),
        route("wild", "/wild", hosts=["*.example.com"]),
        route("exact", "/a", hosts=["x.example.com"]),
    ]
    assert route_names(routes, request("GET /wild", "x.example.com")) == ["wild"]
    assert route_names(routes, request("GET /z", "x.example.com")) == ["any"]


def test_the_longer_wildcard_goes_first_also_where_the_listener_makes_both_alike() -> None:
    only = gateway(Listener("only", 80, "HTTP", "a.b.com"))
    routes = [route("a-short", hosts=["*.com"]), route("b-long", hosts=["*.b.com"]), route("c-none")]
    assert route_names(routes, request("GET /", "a.b.com"), only) == ["b-long"]


def test_indistinguishable_listeners_serve_nothing() -> None:
    twins = gateway(Listener("a", 80, "HTTP", "a.com"), Listener("b", 80, "http", "A.com"), Listener("c", 80, "HTTP"))
    assert route_names([route("r")], request("GET /", "b.com"), twins) == ["r"]
    assert route_names([route("r")], request("GET /", "a.com"), gateway(*twins.listeners[:2])) == ["404"]


MEETING = [("a.b.c", "a.b.c"), ("a.b.c", "*.b.c"), ("a.b.c", "*.c"), ("*.b.c", "*.c"), ("*.b.c", None), (None, None)]
APART = [
    ("a.b.c", "b.c"),
    ("b.c", "*.b.c"),
    ("*.b.c", "*.bb.c"),
    ("*.a.c", "*.b.c"),
    ("xb.c", "*.b.c"),
    ("a.b.c", "*.d"),
]


@pytest.mark.parametrize(("pair", "meet"), [*((pair, True) for pair in MEETING), *((pair, False) for pair in APART)])
def test_two_hostnames_meet_where_some_host_means_both(pair: tuple[str | None, str | None], meet: bool) -> None:
    one, other = pair
    assert intersect(one, other) is meet
    assert intersect(other, one) is meet
