"""Backends of the chosen rule."""

from __future__ import annotations

from eastgate.cluster import (
    Gateway,
    GrantFrom,
    GrantTo,
    ReferenceGrant,
    RouteBackend,
    RouteMatch,
    RouteRule,
    World,
    WorldObject,
)
from eastgate.cluster.routing import BackendRef, Routed, RoutingTable
from tests.cluster.routing.building import GATEWAY, possible, possible_routes, request, route, rule


def taken(*objects: WorldObject) -> Routed:
    (found,) = possible_routes(World.of(objects), GATEWAY, request("GET /", "a"))
    assert found is not None
    return found


def to(*backends: RouteBackend) -> RouteRule:
    return RouteRule((RouteMatch(),), backends)


def test_a_rule_leads_to_its_backends_but_not_to_those_without_weight() -> None:
    one = RouteBackend("edge", "web", port=80, weight=9)
    two = RouteBackend("edge", "mcp", "agentic.prototype.x-k8s.io", "XBackend")
    found = taken(route("r", to(one, RouteBackend("edge", "old", port=80, weight=0), two)))
    assert found.backends == (
        BackendRef("", "Service", "edge", "web", 80, 9, granted=True),
        BackendRef("agentic.prototype.x-k8s.io", "XBackend", "edge", "mcp", None, 1, granted=True),
    )
    assert (found.rule, found.answered) == (0, False)


def test_a_reference_into_another_namespace_needs_a_grant_there() -> None:
    routes = route("r", to(RouteBackend("shop", "web", port=80), RouteBackend("shop", "other", port=80)))
    assert [one.granted for one in taken(routes).backends] == [False, False]
    origin = GrantFrom("gateway.networking.k8s.io", "HTTPRoute", "edge")
    grant = ReferenceGrant("shop", "g", (origin,), (GrantTo("", "Service", "web"),))
    assert [one.granted for one in taken(routes, grant).backends] == [True, False]


def test_a_rule_without_backends_leads_nowhere_and_a_redirect_is_answered() -> None:
    assert (taken(route("r")).backends, taken(route("r")).answered) == ((), False)
    redirect = taken(route("r", rule(redirects=True)))
    assert (redirect.backends, redirect.answered) == ((), True)


def test_a_table_may_be_kept_and_asked_again() -> None:
    world = World.of([route("r", "/a"), route("s", "/b")])
    table = RoutingTable.of(world, GATEWAY)
    for path in ("/a", "/b", "/c"):
        asked = request(f"GET {path}", "a")
        assert possible(table, asked) == possible_routes(world, GATEWAY, asked)


def test_a_gateway_that_is_not_in_the_world_can_be_asked_about() -> None:
    assert possible_routes(World(), Gateway("edge", "gw"), request("GET /")) == (None,)
