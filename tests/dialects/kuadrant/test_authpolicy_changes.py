"""After each change, the policies in force are those of a fresh read."""

from __future__ import annotations

import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.reading import ManifestError
from tests.dialects.kuadrant.test_authpolicy import (
    GATEWAY_TARGET,
    ROUTE_TARGET,
    ask,
    authority,
    gateway,
    object_of,
    policy,
    policy_of,
    route,
    schemes,
)

TO = "route:shop/toys"
OLDER = policy("older", ROUTE_TARGET, schemes("'*.toys.com'", denies=True), created="2023-01-01T00:00:00Z")
YOUNGER = policy("younger", ROUTE_TARGET, schemes("'*.toys.com'"), created="2024-01-01T00:00:00Z")
OLDEST = policy("oldest", ROUTE_TARGET, "rules: [{paths: [/x]}]", created="2022-01-01T00:00:00Z")


def by(of: Authority, path: str = "/") -> str | None:
    """Return the policy that decides about a request to the route."""
    found = ask(of, TO, "a.toys.com", path).policy
    return found.rpartition("/")[2] if found is not None else None


def reasons(of: Authority) -> dict[str, str]:
    decision = ask(of, TO, "a.toys.com")
    return {name.rpartition("/")[2]: condition.reason for name, condition in decision.conditions}


def test_without_the_older_the_younger_is_in_force() -> None:
    one = authority(gateway(), route(), OLDER, YOUNGER)
    assert (by(one), reasons(one)) == ("older", {"older": "HTTPRouteProtected", "younger": "Conflicted"})
    one.update(remove=[policy_of(OLDER).ref])
    assert (by(one), reasons(one)) == ("younger", {"younger": "HTTPRouteProtected"})
    one.update(remove=[policy_of(YOUNGER).ref])
    assert (by(one), reasons(one)) == (None, {})


def test_an_older_one_that_comes_late_takes_over() -> None:
    one = authority(gateway(), route(), YOUNGER)
    assert by(one) == "younger"
    one.update([policy_of(OLDER)])
    assert by(one) == "older"
    one.update([policy_of(OLDEST)])
    assert (by(one), by(one, "/x")) == (None, "oldest")


def test_one_that_becomes_an_audit_leaves_the_other_in_force() -> None:
    one = authority(gateway(), route(), OLDER, YOUNGER)
    audited = policy("older", ROUTE_TARGET, schemes("'*.toys.com'", denies=True), audit=True)
    one.update([policy_of(audited)])
    assert (by(one), reasons(one)) == ("younger", {"older": "Audit", "younger": "HTTPRouteProtected"})


def test_one_that_moves_to_the_gateway_applies_beside_the_other() -> None:
    one = authority(gateway(), route(), OLDER, YOUNGER)
    one.update([policy_of(policy("older", GATEWAY_TARGET, schemes("'*'")))])
    decision = ask(one, TO, "a.toys.com")
    assert decision.allowed
    assert [layer.name for layer in decision.layers] == ["gateway/auth", "route/auth"]
    assert reasons(one) == {"older": "GatewayProtected", "younger": "HTTPRouteProtected"}


def test_a_policy_waits_for_its_route() -> None:
    one = authority(gateway(), route(name="other", hostnames="other.com"), OLDER)
    one.update(put=[object_of(route())])
    assert by(one) == "older"


def test_a_route_that_moves_away_from_the_hosts_makes_an_error_of_the_status() -> None:
    rules = "rules: [{hosts: [a.toys.com]}]\n"
    one = authority(gateway(), route(), policy("p", ROUTE_TARGET, rules + schemes("a.toys.com")))
    assert reasons(one) == {"p": "HTTPRouteProtected"}
    with pytest.raises(ManifestError):
        one.update(put=[object_of(route("b.toys.com"))])
    assert reasons(one) == {"p": "HTTPRouteProtected"}
    one._live.put(object_of(route("b.toys.com")))  # as a cluster does, which asks no one
    decision = ask(one, TO, "b.toys.com")
    assert [condition.reason for _, condition in decision.conditions] == ["Error"]
