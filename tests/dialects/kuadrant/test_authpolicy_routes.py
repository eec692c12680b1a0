"""Questions about a route include every Gateway of the route, and hosts that the route does not accept."""

from __future__ import annotations

import pytest

from eastgate.authority.questions import Question, QuestionError
from tests.dialects.kuadrant.test_authpolicy import (
    GATEWAY_TARGET,
    ROUTE_TARGET,
    ask,
    authority,
    gateway,
    policy,
    route,
    schemes,
)

TO = "route:shop/toys"
LETS_IN = policy("on-route", ROUTE_TARGET, schemes("'*.toys.com'"))
INTERNAL_TARGET = GATEWAY_TARGET.replace("external", "internal")
BOTH = "{name: external}, {name: internal}"
KEEPS_OUT = policy("on-internal", INTERNAL_TARGET, schemes("'*'", denies=True))


def test_the_way_is_through_the_gateway_to_the_route() -> None:
    decision = ask(authority(gateway(), route(), LETS_IN), TO, "a.toys.com")
    assert decision.allowed
    assert decision.ways == (("gateway shop/external -> Service shop/toys", True),)


def test_a_gateway_that_nobody_declared_lets_everything_in() -> None:
    decision = ask(authority(route(), LETS_IN), TO, "a.toys.com")
    assert (decision.verdict, decision.policy) == ("allow", "AuthPolicy/shop/on-route")
    assert [one.name for one in decision.layers] == ["route/auth"]


def test_a_policy_on_a_gateway_that_nobody_declared_applies_all_the_same() -> None:
    decision = ask(authority(route(), policy("g", GATEWAY_TARGET, schemes("'*'", denies=True))), TO, "a.toys.com")
    assert (decision.verdict, decision.policy) == ("deny", "AuthPolicy/shop/g")


def test_every_parent_is_a_way_of_its_own() -> None:
    declared = gateway() + gateway(name="internal")
    decision = ask(authority(declared, route(parents=BOTH), LETS_IN, KEEPS_OUT), TO, "a.toys.com")
    assert not decision.allowed
    assert decision.policy == "AuthPolicy/shop/on-internal"
    assert [(where.split(" ->")[0], allowed) for where, allowed in decision.ways] == [
        ("gateway shop/external", True),
        ("gateway shop/internal", False),
    ]


def test_of_a_route_without_parents_only_the_route_is_known() -> None:
    decision = ask(authority(gateway(), route(parents=""), LETS_IN), TO, "a.toys.com")
    assert decision.allowed
    assert decision.ways == (("route shop/toys", True),)


@pytest.mark.parametrize("parents", ["{name: external}", BOTH, "{name: undeclared}"])
@pytest.mark.parametrize("host", ["other.com", "toys.com", "eviltoys.com"])
def test_a_host_that_the_route_does_not_take_is_not_found(parents: str, host: str) -> None:
    declared = gateway() + gateway(name="internal")
    decision = ask(authority(declared, route(parents=parents), LETS_IN), TO, host)
    assert (decision.verdict, decision.status) == ("deny", 404)
    assert decision.reason.startswith("no route of the gateway matches")


def test_a_host_that_the_listener_does_not_take_is_not_found() -> None:
    decision = ask(authority(gateway("b.toys.com"), route(), LETS_IN), TO, "a.toys.com")
    assert (decision.verdict, decision.status) == ("deny", 404)


def test_a_host_that_another_route_takes_is_not_found_here() -> None:
    other = route("a.toys.com", name="closer")
    declared = authority(gateway(), route(), other, LETS_IN)
    assert ask(declared, TO, "a.toys.com").status == 404
    assert ask(declared, "route:shop/closer", "a.toys.com").allowed
    assert ask(declared, TO, "b.toys.com").allowed


def test_a_port_that_no_listener_has_is_not_found() -> None:
    declared = authority(gateway(port=8080), route(), LETS_IN)
    asked = {
        port: Question.of("anonymous", TO, port=port, method="GET", path="/", host="a.toys.com", headers={})
        for port in (8080, 80)
    }
    assert declared.decide(asked[8080]).allowed
    assert declared.decide(asked[80]).status == 404


def test_the_port_of_the_parent_reference_is_that_of_the_gateway_that_nobody_declared() -> None:
    declared = authority(route(parents="{name: undeclared, port: 8443}"), LETS_IN)
    asked = {
        port: Question.of("anonymous", TO, port=port, method="GET", path="/", host="a.toys.com", headers={})
        for port in (8443, 80)
    }
    assert declared.decide(asked[8443]).allowed
    assert declared.decide(asked[80]).status == 404


def test_a_policy_on_the_route_applies_to_what_comes_by_the_gateway() -> None:
    keeps_out = policy("on-route", ROUTE_TARGET, schemes("'*.toys.com'", denies=True))
    declared = authority(gateway(), route(), route("cars.com", name="cars"), keeps_out)
    assert ask(declared, "gateway:shop/external", "a.toys.com").policy == "AuthPolicy/shop/on-route"
    assert ask(declared, "gateway:shop/external", "cars.com").allowed


def test_a_route_that_nobody_declared_cannot_be_asked_about() -> None:
    with pytest.raises(QuestionError, match="no manifest declares HTTPRoute shop/toy"):
        ask(authority(gateway(), route()), "route:shop/toy", "a.toys.com")
