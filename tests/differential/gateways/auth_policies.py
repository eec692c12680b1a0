"""Drawn AuthPolicies (`kuadrant.io/v1`) on the Gateway, listeners, routes and rules, with defaults and overrides."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.differential.world import Manifest
from tests.worlds.kuadrant_generate import STAMPS

__all__ = ["policies_of_today"]

_API = "kuadrant.io/v1"
_GATEWAY_GROUP = "gateway.networking.k8s.io"
_NAMES = ["a", "b"]
_PREDICATES = [
    "request.method != 'POST'",
    "request.path.startsWith('/a')",
    "request.url_path == '/mcp'",
    "request.headers['k'] == 'v'",
    "'x-a' in request.headers",
    "request.host.endsWith('.example')",
]
_credentials = st.sampled_from(
    [
        {"authorizationHeader": {"prefix": "APIKEY"}},
        {"customHeader": {"name": "X-Key"}},
        {"queryString": {"name": "api_key"}},
        {"cookie": {"name": "KEY"}},
    ]
)
_patterns: st.SearchStrategy[Manifest] = st.sampled_from(
    [
        {"selector": "request.method", "operator": "eq", "value": "POST"},
        {"selector": "request.headers.x-a", "operator": "neq", "value": "1"},
        {"selector": "request.path", "operator": "matches", "value": "^/(a|mcp)"},
        {"selector": "auth.identity.metadata.labels.tier", "operator": "eq", "value": "gold"},
        {"selector": "auth.identity.anonymous", "operator": "eq", "value": "true"},
        {"patternRef": "a"},
    ]
)
_entry_when = st.lists(st.sampled_from(_PREDICATES), max_size=1).map(
    lambda texts: {"when": [{"predicate": text} for text in texts]} if texts else {}
)
_authentication: st.SearchStrategy[Manifest] = st.one_of(
    st.just({"anonymous": {}}),
    st.tuples(st.sampled_from(["friends", "others"]), _credentials).map(
        lambda drawn: {"apiKey": {"selector": {"matchLabels": {"group": drawn[0]}}}, "credentials": drawn[1]}
    ),
)
_authorization = st.one_of(
    st.lists(_patterns, min_size=1, max_size=2).map(lambda patterns: {"patternMatching": {"patterns": patterns}}),
    st.sampled_from(["allow = false", 'allow { input.request.method == "GET" }']).map(
        lambda rego: {"opa": {"rego": rego}}
    ),
)
_denial = st.sampled_from([{"code": 402, "message": {"value": "no"}}, {"code": 418, "body": {"value": "tea"}}])


def _named(of: st.SearchStrategy[Manifest]) -> st.SearchStrategy[Manifest]:
    guarded = st.tuples(of, _entry_when).map(lambda drawn: {**drawn[0], **drawn[1]})
    return st.dictionaries(st.sampled_from(_NAMES), guarded, min_size=1, max_size=2)


@st.composite
def _proper(draw: st.DrawFn) -> Manifest:
    rules: Manifest = {}
    if draw(st.integers(0, 3)):
        rules["authentication"] = draw(_named(_authentication))
    if not rules or draw(st.booleans()):
        rules["authorization"] = draw(_named(_authorization))
    if draw(st.integers(0, 4)) == 0:
        rules["response"] = {draw(st.sampled_from(["unauthenticated", "unauthorized"])): draw(_denial)}
    proper: Manifest = {"rules": rules}
    if draw(st.integers(0, 2)) == 0:
        texts = draw(st.lists(st.sampled_from(_PREDICATES), min_size=1, max_size=2, unique=True))
        proper["when"] = [{"predicate": text} for text in texts]
    if draw(st.integers(0, 3)):
        drawn = draw(st.lists(_patterns, max_size=2))
        proper["patterns"] = {"a": {"allOf": [pattern for pattern in drawn if "patternRef" not in pattern]}}
    return proper


def _targets(listeners: list[Manifest], routes: list[Manifest]) -> list[Manifest]:
    gateway = {"group": _GATEWAY_GROUP, "kind": "Gateway", "name": "g"}
    targets: list[Manifest] = [gateway, gateway]
    targets += [{**gateway, "sectionName": listener["name"]} for listener in listeners[:2]]
    for route in routes:
        if route["metadata"]["namespace"] != "n":
            continue
        ref: Manifest = {"group": _GATEWAY_GROUP, "kind": route["kind"], "name": route["metadata"]["name"]}
        named = [rule["name"] for rule in route["spec"]["rules"] if "name" in rule]
        targets += [ref, *({**ref, "sectionName": name} for name in named)]
    return targets


@st.composite
def policies_of_today(draw: st.DrawFn, listeners: list[Manifest], routes: list[Manifest]) -> list[Manifest]:
    """Draw policies, some of them on one target, and name some rules of the routes."""
    for route in routes:
        for number, rule in enumerate(route["spec"]["rules"]):
            if draw(st.booleans()):
                rule["name"] = f"r{number}"
    targets = _targets(listeners, routes)
    policies = []
    for name in ["pt", "qt", "rt", "st"][: draw(st.integers(1, 4))]:
        metadata: dict[str, Any] = {"name": name, "namespace": "n"}
        if draw(st.booleans()):
            metadata["creationTimestamp"] = draw(st.sampled_from(STAMPS))
        spec: Manifest = {"targetRef": draw(st.sampled_from(targets))}
        block = draw(st.sampled_from(["", "defaults", "overrides"]))
        proper = draw(_proper())
        if block:
            spec[block] = {**proper, **draw(st.sampled_from([{}, {"strategy": "atomic"}, {"strategy": "merge"}]))}
        else:
            spec |= proper
        policies.append({"apiVersion": _API, "kind": "AuthPolicy", "metadata": metadata, "spec": spec})
    return policies
