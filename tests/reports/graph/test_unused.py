"""Unused rules: without them no answer changes. Each is either proven or reported as not proven."""

from __future__ import annotations

import pytest

from eastgate import Authority
from eastgate.ir.symbolic.witnesses import GaveUp
from eastgate.reports.graph.unused import Proof, find_unused
from tests.reports.graph.world import authority_from, example, pod, policy

WEB = '{authorizationSource: {serviceAccounts: ["here/web"]}}'
ON_80 = '{authorizationSource: {serviceAccounts: ["here/web"]}, networkAttributes: {ports: [80]}}'
ALL = '{authorizationSource: {serviceAccounts: ["here/*"]}}'


def _world(*rules: str, action: str = "ALLOW") -> Authority:
    policies = "".join(policy(f"p{number}", "db", f"[{each}]", action=action) for number, each in enumerate(rules))
    return authority_from(pod("web") + pod("db") + policies)


def _unused(authority: Authority) -> dict[str, str]:
    return {str(rule.origin): str(rule.proof) for rule in find_unused(authority).rules}


def test_a_rule_that_another_covers_is_unused() -> None:
    unused = find_unused(_world(WEB, ON_80))
    (rule,) = unused.rules
    assert (str(rule.origin), rule.proof) == ("AuthorizationPolicy/here/p1 rule 0", Proof.UNUSED)
    assert [str(origin) for origin in rule.instead] == ["AuthorizationPolicy/here/p0 rule 0"]
    assert [str(ref) for ref in unused.policies] == ["AuthorizationPolicy/here/p1"]


def test_of_two_that_say_the_same_neither_is_needed() -> None:
    assert set(_unused(_world(WEB, WEB))) == {
        "AuthorizationPolicy/here/p0 rule 0",
        "AuthorizationPolicy/here/p1 rule 0",
    }


def test_a_rule_that_lets_in_accounts_that_do_not_exist_yet_is_needed() -> None:
    assert set(_unused(_world(WEB, ALL))) == {"AuthorizationPolicy/here/p0 rule 0"}


def test_rules_that_only_together_cover_another() -> None:
    get = "{authorizationSource: {serviceAccounts: [here/web]}, applicationAttributes: {methods: [GET]}}"
    post = get.replace("GET", "POST")
    both = get.replace("GET", "GET, POST")
    world = pod("web") + pod("db")
    text = "".join(policy(f"p{number}", "db", f"[{each}]") for number, each in enumerate((get, post, both)))
    world += text.replace("  action", "  enforcementLevel: APPLICATION\n  action")
    assert set(_unused(authority_from(world))) == {f"AuthorizationPolicy/here/p{number} rule 0" for number in (0, 1, 2)}


def test_every_rule_of_some_examples_is_needed() -> None:
    assert not _unused(example("agents"))
    assert not _unused(example("payment"))


def test_an_unproven_rule_is_not_reported_as_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: object) -> None:
        raise GaveUp

    monkeypatch.setattr("eastgate.reports.graph.unused.witness", give_up)
    proofs = set(_unused(example("agents")).values())
    assert proofs == {"not proven"}
    assert not find_unused(example("agents")).policies
