"""Findings about policies, their targets and each other, and the condition of each policy."""

from __future__ import annotations

import pytest

from eastgate import dialects
from eastgate.authority.reading import Manifests, sort_documents
from eastgate.cluster import World
from eastgate.dialects.base import Condition
from eastgate.dialects.kuadrant.proposal import Policy
from eastgate.dialects.kuadrant.proposal.words import conditions
from eastgate.reading.manifests import read_text
from eastgate.settings import Settings
from tests.dialects.kuadrant.test_authpolicy import (
    GATEWAY_TARGET,
    ROUTE_TARGET,
    ask,
    authority,
    gateway,
    policy,
    policy_of,
    route,
    schemes,
)

OLD, NEW = "2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z"
EVERYBODY = schemes("a.toys.com")


def read(*texts: str) -> Manifests:
    reading = read_text("m.yaml", "".join(texts), positioned=dialects.reads)
    return sort_documents(reading.documents, Settings(), reading.reporter)


def findings_of(*texts: str) -> list[tuple[str, str]]:
    """Return each finding: its code and the underlined text."""
    return [(one.code.id, one.span.underlined if one.span else "") for one in read(*texts).reporter]


# The hostnames of a route, the hosts of a rule, and the rule hosts that are outside.
ROUTES = [
    ("'*.toystore.com'", "'*.carstore.com'", ["'*.carstore.com'"]),  # the document's picture: rejected
    ("'*.toystore.com'", "admin.toystore.com", []),  # and accepted
    ("'*.toystore.com'", "eviltoystore.com, toystore.com", ["eviltoystore.com", "toystore.com"]),
    ("'*.toystore.com', www.cars.com", "www.cars.com, a.b.toystore.com, cars.com", ["cars.com"]),
    ("a.com", "'*'", ["'*'"]),
    ("", "'*', anything.org", []),
]


@pytest.mark.parametrize(("hostnames", "hosts", "outside"), ROUTES)
def test_each_host_of_a_rule_is_inside_of_one_of_the_route(hostnames: str, hosts: str, outside: list[str]) -> None:
    texts = route(hostnames), policy("p", ROUTE_TARGET, f"rules: [{{hosts: [{hosts}]}}]\n{schemes(hosts)}")
    assert findings_of(*texts) == [("EG5008", host) for host in outside]


def test_on_a_gateway_a_rule_may_have_any_host() -> None:
    rules = "rules: [{hosts: [anything.org]}]\n"
    assert findings_of(gateway("*.toys.com"), policy("p", GATEWAY_TARGET, rules + schemes("anything.org"))) == []


# Rules, the hosts of the scheme, and the scheme hosts without a rule; the target has the hostname *.toys.com.
SCHEMES = [
    ("[{hosts: [a.toys.com]}]", "a.toys.com", []),
    ("[{hosts: [a.toys.com]}]", "a.toys.com, b.toys.com", ["b.toys.com"]),
    ("[{hosts: [a.toys.com]}, {hosts: [b.toys.com]}]", "b.toys.com", []),
    ("[{hosts: [a.toys.com]}]", "'*.toys.com'", ["'*.toys.com'"]),
    ("[{paths: [/admin]}]", "b.toys.com, other.com", ["other.com"]),
    ("[{hosts: [a.toys.com]}, {paths: [/admin]}]", "'*.toys.com'", []),
    ("[]", "'*.toys.com', '*'", ["'*'"]),
]


@pytest.mark.parametrize("target", [ROUTE_TARGET, GATEWAY_TARGET], ids=["route", "gateway"])
@pytest.mark.parametrize(("rules", "hosts", "outside"), SCHEMES)
def test_each_host_of_a_scheme_is_inside_of_one_of_the_rules(
    target: str, rules: str, hosts: str, outside: list[str]
) -> None:
    texts = gateway("*.toys.com"), route(), policy("p", target, f"rules: {rules}\n{schemes(hosts)}")
    assert findings_of(*texts) == [("EG5009", host) for host in outside]


def test_of_a_target_that_is_not_there_no_host_is_known() -> None:
    assert findings_of(policy("p", ROUTE_TARGET, "rules: [{hosts: [a.b]}]\n" + schemes("a.b"))) == [("EG5012", "toys")]
    assert findings_of(policy("p", ROUTE_TARGET, schemes("a.b"))) == [("EG5012", "toys")]
    outside = policy("p", ROUTE_TARGET, "rules: [{hosts: [a.b]}]\n" + schemes("c.d"))
    assert findings_of(outside) == [("EG5012", "toys"), ("EG5009", "c.d")]


def test_a_rejected_policy_is_no_policy_and_its_document_is_kept() -> None:
    manifests = read(route(), policy("bad", ROUTE_TARGET, schemes("a.b")), policy("good", ROUTE_TARGET, EVERYBODY))
    assert [str(one.ref) for one in manifests.policies] == ["AuthPolicy/shop/good"]
    assert [
        (document.name, [one.code.id for one in found])
        for document, found in ((fault.document, fault.errors) for fault in manifests.closing)
    ] == [("bad", ["EG5009"])]


def test_targets_of_one_name_and_two_kinds_are_two_targets() -> None:
    on_gateway = GATEWAY_TARGET.replace("external", "toys")
    texts = gateway(name="toys"), route(parents="{name: toys}")
    assert findings_of(*texts, policy("a", ROUTE_TARGET, EVERYBODY), policy("b", on_gateway, EVERYBODY)) == []


def condition(name: str, *texts: str) -> Condition:
    """Return the condition of the policy with a name."""
    found = read(*texts)
    policies = [one for one in found.policies if isinstance(one, Policy)]
    (mine,) = (one for one in policies if one.ref.name == name)
    (available,) = conditions(mine, policies, Settings(), World.of(found.objects))
    return available


@pytest.mark.parametrize(
    ("target", "kind"), [(ROUTE_TARGET, "HTTPRoute"), (GATEWAY_TARGET, "Gateway")], ids=["route", "gateway"]
)
def test_a_policy_in_force_protects_its_target(target: str, kind: str) -> None:
    found = condition("p", gateway(), route(), policy("p", target, EVERYBODY))
    assert found == Condition("Available", "True", f"{kind}Protected", f"{kind} is protected")


def test_a_policy_without_schemes_protects_its_target_from_everybody() -> None:
    assert condition("p", route(), policy("p", ROUTE_TARGET, "rules: []")).reason == "HTTPRouteProtected"


def test_a_policy_without_a_target_has_an_error() -> None:
    found = condition("p", policy("p", GATEWAY_TARGET, EVERYBODY))
    assert found == Condition("Available", "False", "Error", "no manifest declares Gateway shop/external")


def test_a_host_that_came_to_be_outside_is_an_error() -> None:
    late = policy_of(policy("p", ROUTE_TARGET, "rules: [{hosts: [a.b]}]\n" + schemes("a.b")))
    found = conditions(late, [late], Settings(), World.of(read(route()).objects))
    message = "rule host (`a.b`) does not follow any hierarchical constraints"
    assert found == [Condition("Available", "False", "Error", message)]


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (OLD, NEW, "is older"),
        ("", "", "is the first by name"),
        (OLD, OLD, "is the first by name"),
        (NEW, "", "is older"),
    ],
)
def test_of_two_the_one_that_is_not_in_force_says_so(first: str, second: str, why: str) -> None:
    texts = (
        route(),
        policy("a", ROUTE_TARGET, EVERYBODY, created=first),
        policy("b", ROUTE_TARGET, EVERYBODY, created=second),
    )
    message = f"not in force: AuthPolicy/shop/a has the same target, and {why}"
    assert condition("a", *texts).status == "True"
    assert condition("b", *texts) == Condition("Available", "False", "Conflicted", message)
    assert findings_of(*texts) == [("EG5013", "b")]


def test_an_audit_protects_nothing_and_is_in_nobodys_way() -> None:
    texts = (
        route(),
        policy("a", ROUTE_TARGET, EVERYBODY, created=OLD, audit=True),
        policy("b", ROUTE_TARGET, EVERYBODY, created=NEW),
    )
    message = "HTTPRoute is not protected: the policy only audits"
    assert condition("a", *texts) == Condition("Available", "False", "Audit", message)
    assert condition("b", *texts).status == "True"
    assert findings_of(*texts) == []


def test_conditions_come_with_a_decision() -> None:
    both = policy("a", ROUTE_TARGET, EVERYBODY, created=OLD), policy("b", ROUTE_TARGET, EVERYBODY, created=NEW)
    decision = ask(authority(gateway(), route(), *both), "route:shop/toys", "a.toys.com")
    assert {name: one.reason for name, one in decision.conditions} == {
        "AuthPolicy/shop/a": "HTTPRouteProtected",
        "AuthPolicy/shop/b": "Conflicted",
    }
