"""A tool question without HTTP on generated Gateways: ALLOW exactly if every request that it may mean is allowed."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from eastgate.authority.outcomes import examples
from eastgate.cli.check import check
from eastgate.cli.questions import Asked
from eastgate.engine import reference
from eastgate.ir import Request
from eastgate.ir.attributes import HOST, METHOD, PATH, PORT, header, query
from tests.cluster.routing import naive
from tests.worlds.test_generated_clusters import authority_of

Manifest = dict[str, Any]
SEED, TODAY = "agentic.prototype.x-k8s.io", "agentic.networking.x-k8s.io"
BACKENDS, TOOLS = ["b1", "b2"], ["add", "del"]
AGENT = {"type": "ServiceAccount", "serviceAccount": {"name": "agent", "namespace": "n"}}
# Few values, so that they match. The pools have one value of every class that rules can distinguish
HOSTNAMES, PREFIXES, EXACT = ["a.example", "*.example"], ["/", "/a", "/a/b"], ["/a", "/b"]
HOSTS = ["a.example", "z.example", "elsewhere"]
PATHS = ["/", "/a", "/a/z", "/a/b", "/a/b/z", "/b", "/z"]
HEADERS: list[dict[str, str | list[str]]] = [{}, {"x": "1"}, {"x": "2"}, {"x": ["1", "2"]}]
QUERIES = ["", "?q=1"]

FIXED: list[Manifest] = [
    {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "g", "namespace": "n"},
        "spec": {"gatewayClassName": "c", "listeners": [{"name": "l", "port": 80, "protocol": "HTTP"}]},
    },
    *(
        {
            "apiVersion": f"{SEED}/v0alpha0",
            "kind": "XBackend",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"mcp": {"serviceName": name, "port": 8080}},
        }
        for name, namespace in [("b1", "n"), ("b2", "n"), ("far", "other")]
    ),
]


def backend(name: str, **more: object) -> Manifest:
    return {"group": SEED, "kind": "XBackend", "name": name, **more}


REFS = [
    *([backend(name)] for name in BACKENDS * 3),
    [backend("b1"), backend("b2")],
    [backend("far", namespace="other")],
    [backend("b1"), backend("far", namespace="other")],
    [{"name": "web", "port": 80}],
]
path_matches = st.sampled_from(
    [
        *({"path": {"type": "PathPrefix", "value": path}} for path in PREFIXES),
        *({"path": {"type": "Exact", "value": path}} for path in EXACT),
    ]
)
other_matches = st.sampled_from(
    [{}] * 3
    + [
        {"headers": [{"name": "x", "value": "1"}]},
        {"headers": [{"name": "x", "value": "2"}]},
        {"queryParams": [{"name": "q", "value": "1"}]},
        {"method": "GET"},
        {"method": "POST"},
    ]
)
matches = st.builds(lambda path, more: {**path, **more}, path_matches, other_matches)
rules = st.builds(
    lambda matches, refs: {"matches": matches, "backendRefs": refs},
    st.lists(matches, min_size=1, max_size=2),
    st.sampled_from(REFS),
)


@st.composite
def routes(draw: st.DrawFn) -> list[Manifest]:
    return [
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": f"r{number}", "namespace": "n"},
            "spec": {
                "parentRefs": [{"name": "g"}],
                "hostnames": draw(st.just([]) | st.lists(st.sampled_from(HOSTNAMES), max_size=2, unique=True)),
                "rules": draw(st.lists(rules, min_size=1, max_size=3)),
            },
        }
        for number in range(draw(st.integers(1, 3)))
    ]


targets = st.sampled_from(
    [*(backend(name) for name in BACKENDS), {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"}]
)
attributes = st.fixed_dictionaries(
    {},
    optional={
        "paths": st.sampled_from([[{"type": "PathPrefix", "value": path}] for path in PREFIXES[1:]])
        | st.sampled_from([[{"type": "Exact", "value": path}] for path in EXACT]),
        "hosts": st.sampled_from([["a.example"], ["*.example"]]),
        "headers": st.sampled_from([[{"name": "x", "value": "1"}]]),
    },
)


@st.composite
def policies(draw: st.DrawFn) -> list[Manifest]:
    found: list[Manifest] = []
    for number in range(draw(st.integers(0, 4))):
        target, action = draw(targets), draw(st.sampled_from(["Allow", "Deny"]))
        metadata = {"name": f"p{number}", "namespace": "n"}
        if draw(st.booleans()):
            tools = draw(st.lists(st.sampled_from(TOOLS), min_size=1, unique=True))
            rule = {"name": "r", "source": AGENT, "authorization": {"type": "InlineTools", "tools": tools}}
            spec: Manifest = {"targetRefs": [target], "rules": [rule]}
            spec |= {"action": "Deny"} if action == "Deny" else {}
            version = f"{SEED}/v0alpha0"
        else:
            rule = {"name": "r", "authorization": {"type": "Inline", **draw(attributes)}}
            spec = {"targetRefs": [target], "action": action, "rules": [rule]}
            version = f"{TODAY}/v1alpha1"
        found.append({"apiVersion": version, "kind": "XAccessPolicy", "metadata": metadata, "spec": spec})
    return found


def every_request() -> Iterator[tuple[str, str, str, dict[str, str | list[str]]]]:
    return itertools.product(HOSTS, PATHS, QUERIES, HEADERS)


class Meant:
    """The requests that a tool question may mean, by brute force."""

    def __init__(self, authority: Authority, tool: str) -> None:
        self.authority, self.tool = authority, tool
        self.taken = [(request, self._rule(*request)) for request in every_request()]

    def _rule(self, host: str, path: str, text: str, headers: dict[str, str | list[str]]) -> tuple[str, int] | None:
        world = self.authority.world
        given = headers.get("x")
        values: Any = {HOST: host, PATH: path, METHOD: "POST", PORT: 80, header("x"): given, query("q"): None}
        if isinstance(given, list):
            values[header("x")] = tuple(given)
        if text:
            values[query("q")] = "1"
        return naive.choose(world, world.gateways["n/g"], Request(values))

    def _backends(self, rule: tuple[str, int]) -> set[str]:
        route, number = rule
        refs = self.authority.world.routes[route].rules[number].backends
        return {ref.name for ref in refs if ref.kind == "XBackend" and ref.namespace == "n"}

    def allows(self, to: str, requests: list[Any]) -> bool:
        questions = (
            Question.of(
                "sa:n/agent", to, port=None, method="POST", path=path + text, host=host, headers=headers, tool=self.tool
            )
            for host, path, text, headers in requests
        )
        return all(self.authority.decide(question).allowed for question in questions)

    def at_gateway(self) -> bool:
        to_backends = [request for request, rule in self.taken if rule is not None and self._backends(rule)]
        anywhere = [request for request, rule in self.taken if rule is not None]
        return self.allows("gateway:n/g", to_backends or anywhere or [request for request, _ in self.taken])

    def at_backend(self, name: str) -> bool:
        leading = [request for request, rule in self.taken if rule is not None and name in self._backends(rule)]
        return self.allows(f"backend:n/{name}", leading or [request for request, _ in self.taken])

    def at_route(self, key: str) -> bool:
        leading = [request for request, rule in self.taken if rule is not None and rule[0] == key]
        to = key.replace("HTTPRoute/", "route:")
        return self.allows(to, leading) if leading else False


def check_examples(authority: Authority, question: Question) -> None:
    """Check that the printed options of an answer, added to the question, give the stated verdict."""
    decision = authority.decide(question)
    found = examples(decision, authority)
    if found is None:
        return
    for words, allowed in ((found.allow, True), (found.deny, False)):
        line = shlex.split(shlex.join(["-f", "x", *question.arguments, *(words or ())]))
        pasted = asked_in(line)
        assert words is None or authority.decide(pasted).allowed is allowed, (question, words)
    if found.depends is not None:
        line = ["-f", "x", *found.depends.example]
        assert authority.decide(asked_in(line)).allowed


def asked_in(line: list[str]) -> Question:
    """Return the question of a command line of `check`."""
    options = check.make_context("check", line).params
    return Asked(**{field.name: options[field.name] for field in fields(Asked)}).question(Settings())


@settings(max_examples=80, deadline=None)
@given(routes(), policies(), st.sampled_from(TOOLS))
def test_a_tool_question_without_http_is_allowed_if_every_request_is_that_it_may_mean(
    routes: list[Manifest], policies: list[Manifest], tool: str
) -> None:
    authority = authority_of([*FIXED, *routes, *policies], Settings())
    meant = Meant(authority, tool)
    expected = {
        "gateway:n/g": meant.at_gateway(),
        **{f"backend:n/{name}": meant.at_backend(name) for name in BACKENDS},
        **{key.replace("HTTPRoute/", "route:"): meant.at_route(key) for key in authority.world.routes},
    }
    for to, allowed in expected.items():
        question = Question.of("sa:n/agent", to, tool=tool)
        decision = authority.decide(question)
        assert decision.allowed is allowed, (to, decision.reason)
        assert reference.decide(decision.layers, decision.arrival.request).allowed is allowed
        check_examples(authority, question)
