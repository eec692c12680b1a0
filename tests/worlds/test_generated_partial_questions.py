"""A partial question on generated clusters: ALLOW exactly if every request that it may mean is allowed.

The claims of an answer hold, too: its example is allowed, and its conditions match exactly the allowed requests.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from eastgate.authority.outcomes import OTHERWISE
from eastgate.ir import Known, Request
from eastgate.ir.attributes import APPLICATION, HOST, METHOD, PATH, PORT, Attribute, header, normalized_path, query
from eastgate.ir.symbolic.trees import truth
from eastgate.reports.allowed_requests import AllowedRequests
from eastgate.reports.depends import answer_question
from tests.worlds.test_generated_clusters import authority_of
from tests.worlds.test_generated_tool_questions import FIXED, HEADERS, HOSTS, QUERIES, asked_in, policies, routes
from tests.worlds.test_generated_tool_questions import PATHS as ROUTED

Manifest = dict[str, Any]
METHODS, PATHS, PORTS = ["GET", "POST", "PUT"], ["/", "/a", "/a/b", "/b", "/b/c"], [80, 81, 9999]
SIDECARS = Settings.from_mapping({"istioDataPlane": "sidecar"})


def pod(service_ports: list[str]) -> list[Manifest]:
    ports = [{"name": name, "port": port, "targetPort": port} for name, port in zip(service_ports, PORTS, strict=False)]
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "n", "labels": {"app": "p"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s", "namespace": "n"},
            "spec": {"selector": {"app": "p"}, "ports": ports},
        },
    ]


operations = st.fixed_dictionaries(
    {},
    optional={
        "methods": st.lists(st.sampled_from(METHODS[:2]), min_size=1, max_size=2, unique=True),
        "notMethods": st.just(["GET"]),
        "paths": st.sampled_from([["/a"], ["/a*"], ["*/b"], ["/*"], ["/a", "/b*"]]),
        "notPaths": st.sampled_from([["/a"], ["/b*"]]),
        "ports": st.sampled_from([["80"], ["81"]]),
    },
)
sources = st.sampled_from([None, None, {"namespaces": ["n"]}, {"namespaces": ["other"]}, {"principals": ["*"]}])


@st.composite
def istio(draw: st.DrawFn) -> list[Manifest]:
    manifests = []
    for number in range(draw(st.integers(0, 3))):
        rules = []
        for _ in range(draw(st.integers(0, 2))):
            source, operation = draw(sources), draw(operations)
            rule = {"from": [{"source": source}]} if source else {}
            rules.append(rule | ({"to": [{"operation": operation}]} if operation else {}))
        action = draw(st.sampled_from(["ALLOW", "ALLOW", "DENY"])) if rules else "ALLOW"
        manifests.append(
            {
                "apiVersion": "security.istio.io/v1",
                "kind": "AuthorizationPolicy",
                "metadata": {"name": f"p{number}", "namespace": "n"},
                "spec": {"action": action, "rules": rules},
            }
        )
    return manifests


def completions(question: Question, *, may_be_bytes: bool) -> Iterator[tuple[Question, Request]]:
    """Yield the requests that a question to a workload may mean, as questions and as requests for conditions."""
    ports = PORTS if question.port is None else [question.port]
    for port, method, path in itertools.product(ports, METHODS, PATHS):
        if (question.method or method) == method and (question.path or path) == path:
            values: dict[Attribute, Known] = {
                PORT: port,
                METHOD: method,
                PATH: path,
                normalized_path("base"): path,
                APPLICATION: "http",
            }
            yield replace(question, port=port, method=method, path=path), Request(values)
    for port in ports if may_be_bytes and not question.is_http else ():
        paths: dict[Attribute, Known] = {METHOD: None, PATH: None, normalized_path("base"): None}
        yield replace(question, port=port), Request({PORT: port, APPLICATION: "bytes", **paths})


def routed(question: Question) -> Iterator[tuple[Question, Request]]:
    """Yield the requests that a question to a Gateway may mean."""
    for host, path, text, headers in itertools.product(HOSTS, ROUTED, QUERIES, HEADERS):
        for method in ("GET", "POST"):
            x = headers.get("x")
            values: Any = {HOST: host, PATH: path, METHOD: method, PORT: 80, header("x"): x, query("q"): None}
            values |= {header("x"): tuple(x)} if isinstance(x, list) else {}
            values |= {query("q"): "1"} if text else {}
            asked = replace(question, method=method, path=path + text, host=host, headers=headers)
            yield asked, Request(values)


def agree(
    authority: Authority, question: Question, requests: list[tuple[Question, Request]], *, is_partly_found: bool = False
) -> None:
    """Check an answer. `is_partly_found`: it may deny without an example if it has too many conditions to search."""
    verdicts = [authority.decide(asked).allowed for asked, _ in requests]
    answer = answer_question(question, authority)
    assert answer.decision.allowed is all(verdicts), (question, answer.decision.reason)
    is_mixed = any(verdicts) and not all(verdicts)
    if answer.depends is None:
        assert not is_mixed or is_partly_found, question
        return
    assert not all(verdicts)
    line = ["-f", "x", *answer.depends.example]
    pasted = asked_in(line)
    assert answer_question(pasted, authority).decision.allowed, pasted
    if OTHERWISE in (*answer.depends.allow, *answer.depends.deny):
        condition = AllowedRequests(question, authority).condition
        for (asked, request), allowed in zip(requests, verdicts, strict=True):
            assert truth(condition, request) is allowed, (asked, str(condition))


@settings(max_examples=150, deadline=None)
@given(
    istio(),
    st.sampled_from([["http"], ["tcp-x"], ["http", "grpc-y"]]),
    st.sampled_from([{}, {"port": 80}, {"method": "GET"}, {"port": 80, "path": "/a"}]),
)
def test_istio_bytes_and_all_http_requests_count(
    policies: list[Manifest], names: list[str], given: dict[str, Any]
) -> None:
    authority = authority_of([*pod(names), *policies], SIDECARS)
    question = Question.of("sa:n/caller", "pod:n/p", **given)
    is_raw = names == ["tcp-x"] and given.get("port") == 80 and not question.is_http
    requests = list(completions(question, may_be_bytes=True))
    agree(authority, question, [each for each in requests if not is_raw or not each[0].is_http])


@settings(max_examples=12, deadline=None)
@given(routes(), policies())
def test_at_a_gateway_every_request_counts(routes: list[Manifest], policies: list[Manifest]) -> None:
    authority = authority_of([*FIXED, *routes, *policies], Settings())
    question = Question.of("sa:n/agent", "gateway:n/g", port=80, tool=None)
    agree(authority, question, list(routed(question))[::5], is_partly_found=True)


# Tokens: these tests parse the text of conditions, to find a condition with the opposite meaning

ISSUER = "https://issuer.example"
CLAIMS: list[dict[str, str] | None] = [
    None,
    *({"iss": ISSUER, "sub": "x"} | more for more in ({}, {"group": "admin"}, {"group": "other"})),
]
AUTHENTICATION: Manifest = {
    "apiVersion": "security.istio.io/v1",
    "kind": "RequestAuthentication",
    "metadata": {"name": "jwt", "namespace": "n"},
    "spec": {"jwtRules": [{"issuer": ISSUER, "jwksUri": f"{ISSUER}/keys"}]},
}
token_sources = st.sampled_from([{}, {"requestPrincipals": ["*"]}, {"notRequestPrincipals": ["*"]}])
groups = st.sampled_from([{}, {"values": ["admin"]}, {"notValues": ["admin"]}])


@st.composite
def token_policies(draw: st.DrawFn) -> Manifest:
    source, group = draw(token_sources), draw(groups)
    rule: Manifest = {"to": [{"operation": {"paths": ["/a*"]}}]}
    rule |= {"from": [{"source": source}]} if source else {}
    rule |= {"when": [{"key": "request.auth.claims[group]", **group}]} if group else {}
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"action": draw(st.sampled_from(["ALLOW", "DENY"])), "rules": [rule]},
    }


def is_met(text: str, path: str, claims: dict[str, str] | None) -> bool:
    """Return whether a request with these claims, or without a token, meets a condition."""
    where, *phrases = re.split(r"(?:^| )(?=with |without )", text)
    meets_path = {"": True, "/a*": path.startswith("/a"), "paths except /a*": not path.startswith("/a")}
    facts = {"a valid token": claims is not None, "a token": claims is not None, "an invalid token": False}
    facts["claim group=admin"] = (claims or {}).get("group") == "admin"
    words = [phrase.partition(" ")[::2] for phrase in phrases]
    return meets_path[where] and all(
        (word == "with") is all(facts[f] for f in said.split(" and ")) for word, said in words
    )


@settings(max_examples=60, deadline=None)
@given(token_policies(), st.sampled_from(["/a", "/b", None]))
def test_conditions_on_tokens_are_those_of_requests_with_such_tokens(policy: Manifest, path: str | None) -> None:
    authority = authority_of([*pod(["http"]), AUTHENTICATION, policy], SIDECARS)
    question = Question.of("sa:n/caller", "pod:n/p", port=80, method="GET", path=path)
    depends = answer_question(question, authority).depends
    for tried, claims in itertools.product(("/a", "/b") if path is None else (path,), CLAIMS):
        allowed = authority.decide(replace(question, path=tried, claims=claims, no_token=claims is None)).allowed
        if depends is None:
            assert not allowed
        elif OTHERWISE in depends.allow:
            assert allowed is not any(is_met(text, tried, claims) for text in depends.deny), (depends, tried, claims)
        elif OTHERWISE in depends.deny:
            assert allowed is any(is_met(text, tried, claims) for text in depends.allow), (depends, tried, claims)
        else:
            assert allowed  # it depends only on a valid token
