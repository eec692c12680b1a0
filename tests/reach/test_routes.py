"""Routes of undeclared Gateways: reachability and comparisons agree with `check` about them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from eastgate import Authority, Question, Settings
from eastgate.reach.differences import compare
from tests.reach.asking import first_allowed, reachability
from tests.worlds.test_generated_clusters import authority_of

Manifest = dict[str, Any]
_API = "gateway.networking.k8s.io/v1"


def _route(gateways: Sequence[str], host: str = "a.example", kind: str = "HTTPRoute") -> Manifest:
    rules = [{"backendRefs": [{"name": "s", "port": 80}]}]
    parents = [{"name": gateway} for gateway in gateways]
    spec = {"parentRefs": parents, "hostnames": [host], "rules": rules}
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": "r", "namespace": "shop"}, "spec": spec}


def _policy(kind: str, name: str) -> Manifest:
    refused = {"selector": "context.request.http.method", "operator": "eq", "value": "NONE"}
    spec = {
        "targetRef": {"group": "gateway.networking.k8s.io", "kind": kind, "name": name},
        "rules": [{"paths": ["/admin*"]}],
        "authSchemes": [{"hosts": ["a.example"], "authorization": [{"name": "closed", "json": {"rules": [refused]}}]}],
    }
    metadata = {"name": "p", "namespace": "shop"}
    return {"apiVersion": "apim.kuadrant.io/v1alpha1", "kind": "AuthPolicy", "metadata": metadata, "spec": spec}


def _authority(*manifests: Manifest) -> Authority:
    return authority_of(list(manifests), Settings())


def _questions() -> Iterator[Question]:
    hosts, paths = ("a.example", "b.example", "c.example"), ("/", "/admin")
    for host, path in itertools.product(hosts, paths):
        yield Question.of("anonymous", "route:shop/r", port=80, method="POST", path=path, host=host)


def _assert_reach_says_what_check_says(authority: Authority) -> None:
    reach = reachability(authority)
    (destination,) = reach.destinations
    for question in _questions():
        allowed = authority.decide(question).allowed
        assert first_allowed(reach, destination, authority.requests(question)[0]) is allowed, question


def _assert_differences_are_told(old: Authority, new: Authority) -> None:
    for before, after in ((old, new), (new, old)):
        assert any(before.decide(question).allowed is not after.decide(question).allowed for question in _questions())
        assert compare(before, after).differences


_POLICIES = [("Gateway", "one"), ("Gateway", "two"), ("HTTPRoute", "r")]


@pytest.mark.parametrize(("kind", "name"), _POLICIES)
def test_a_question_about_a_route_must_pass_all_its_gateways(kind: str, name: str) -> None:
    route = _route(["one", "two"])
    old, new = _authority(route), _authority(route, _policy(kind, name))
    _assert_reach_says_what_check_says(new)
    _assert_differences_are_told(old, new)


def test_a_route_without_a_gateway_is_a_destination() -> None:
    route = _route([])
    old, new = _authority(route), _authority(route, _policy("HTTPRoute", "r"))
    _assert_reach_says_what_check_says(new)
    _assert_differences_are_told(old, new)


def test_of_two_routes_with_one_name_the_route_of_questions_is_compared() -> None:
    grpc = _route(["one"], "b.example", "GRPCRoute")
    old, new = _authority(_route(["one"]), grpc), _authority(_route(["one"], "c.example"), grpc)
    _assert_reach_says_what_check_says(old)
    _assert_differences_are_told(old, new)
    moved = _authority(_route(["one"]), _route(["one"], "c.example", "GRPCRoute"))
    assert compare(old, moved).equal


def test_a_route_whose_gateway_only_one_side_declares_is_on_that_side_only() -> None:
    listener = {"name": "h", "port": 80, "protocol": "HTTP", "hostname": "elsewhere.example"}
    spec = {"gatewayClassName": "any", "listeners": [listener]}
    gateway = {"apiVersion": _API, "kind": "Gateway", "metadata": {"name": "one", "namespace": "shop"}, "spec": spec}
    pairing = compare(_authority(_route(["one"])), _authority(_route(["one"]), gateway)).pairing
    assert pairing.removed == ("route:shop/r",)
    assert pairing.added == ("gateway:shop/one",)
