"""A scheme is built from the rules of several policies, with their entries and sets of patterns."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import Services
from eastgate.dialects.kuadrant.authorino.model import Denial, LiteralValue, Scheme
from eastgate.dialects.kuadrant.schemes import SchemeSection, pattern_references, scheme_from
from eastgate.reading.manifests.node import Node
from tests.dialects.kuadrant.authorino.schemes import request
from tests.dialects.kuadrant.scheme_texts import node

ROUTE = node(
    """
patterns: {reads: {allOf: [{selector: request.method, operator: eq, value: GET}]}}
when: [{predicate: request.path.startsWith('/orders')}]
rules:
  authentication: {all: {anonymous: {}}}
  authorization: {only-reads: {patternMatching: {patterns: [{patternRef: reads}]}}}
  response:
    unauthorized: {code: 404}
    success:
      headers: {x-team: {plain: {value: a}}}
      filters: {limits: {key: ext, json: {properties: {team: {value: a}}}}}
  callbacks: {log: {http: {url: "http://log"}}}
""",
    "route.yaml",
)
GATEWAY = node(
    """
patterns: {shop: {allOf: [{selector: request.host, operator: eq, value: shop.example}]}}
rules:
  authorization:
    only-shop: {patternMatching: {patterns: [{patternRef: shop}]}}
    either: {patternMatching: {patterns: [{any: [{patternRef: shop}, {patternRef: reads}]}]}}
""",
    "gateway.yaml",
)


def parts(*policies: Node) -> dict[tuple[str, str], Node]:
    given: dict[tuple[str, str], Node] = {}
    for policy in policies:
        sections = {SchemeSection.PATTERNS: policy.get("patterns"), **_rules(policy["rules"])}
        for section, entries in sections.items():
            given.update(((section, name), entry) for name, entry in (entries.items() if entries else ()))
        if "when" in policy:
            given[SchemeSection.CONDITIONS, ""] = policy["when"]
        if (response := policy["rules"].get("response")) is not None:
            given[SchemeSection.UNAUTHORIZED, ""] = response["unauthorized"]
    return given


def _rules(rules: Node) -> dict[SchemeSection, Node | None]:
    success = rules.nearest("response", "success")
    return {
        SchemeSection.AUTHENTICATION: rules.get("authentication"),
        SchemeSection.AUTHORIZATION: rules.get("authorization"),
        SchemeSection.CALLBACKS: rules.get("callbacks"),
        SchemeSection.HEADERS: success.get("headers"),
        SchemeSection.DYNAMIC_METADATA: success.get("filters"),
    }


def allowed(scheme: Scheme, *, compat: bool = False, **facts: Any) -> bool:
    return evaluate(scheme, request(**facts), Services(authorino_compat=compat)).allowed


def test_entries_of_several_policies_are_one_scheme() -> None:
    scheme = scheme_from(parts(ROUTE, GATEWAY), "kuadrant-system")
    assert scheme.namespace == "kuadrant-system"
    assert scheme.hosts == ("*",)
    assert [identity.name for identity in scheme.identities] == ["all"]
    assert [rule.name for rule in scheme.authorizations] == ["only-reads", "only-shop", "either"]
    assert [(response.name, response.key, response.in_header) for response in scheme.responses] == [
        ("x-team", "x-team", True),
        ("limits", "ext", False),
    ]
    assert scheme.unauthorized == Denial(404)
    assert scheme.unauthenticated == Denial()
    assert [(callback.name, callback.call.url) for callback in scheme.callbacks] == [("log", "http://log")]
    sources = [rule.span.source.name for rule in scheme.authorizations if rule.span]
    assert sources == ["route.yaml", "gateway.yaml", "gateway.yaml"]


def test_a_reference_means_the_patterns_of_whichever_policy_has_them() -> None:
    scheme = scheme_from(parts(ROUTE, GATEWAY), "shop")
    assert allowed(scheme)
    assert not allowed(scheme, method="POST")
    assert not allowed(scheme, host="other.example")
    assert allowed(scheme, path="/elsewhere", method="POST"), "when does not hold"


@pytest.mark.parametrize(("compat", "expected"), [(False, False), (True, True)])
def test_a_reference_to_nothing_denies_unless_it_is_dropped_as_authorino_does(compat: bool, expected: bool) -> None:
    given = parts(ROUTE, GATEWAY)
    del given[SchemeSection.PATTERNS, "reads"]
    scheme = scheme_from(given, "shop", authorino_compat=compat)
    assert allowed(scheme, compat=compat, method="POST") is expected


def test_a_dropped_reference_is_no_alternative() -> None:
    given = {("authorization", "a"): node("patternMatching: {patterns: [{any: [{patternRef: none}]}]}")}
    assert not allowed(scheme_from(given, "shop", authorino_compat=True), compat=True)


def test_a_guard_that_refers_to_nothing_denies_and_says_so() -> None:
    given = {
        ("authorization", "a"): node("when: [{patternRef: none}]\npatternMatching: {patterns: [{predicate: 'true'}]}")
    }
    judged = evaluate(scheme_from(given, "shop"), request(), Services())
    assert not judged.allowed
    assert judged.reason == "Its condition errs. No patterns have the name 'none'."


def test_references_can_be_listed() -> None:
    assert [ref.text for ref in pattern_references(GATEWAY["rules"])] == ["shop", "shop", "reads"]


def test_a_policy_that_says_only_how_to_deny() -> None:
    given = {("response.unauthenticated", ""): node("message: {value: hello}")}
    scheme = scheme_from(given, "shop")
    assert scheme.unauthenticated == Denial(message=LiteralValue("hello"))
    assert allowed(scheme)
