"""On generated AuthPolicies the engine, the reference evaluator and the oracle give the same answers."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Decision, Question, Settings
from eastgate.authority.authority import Authority
from eastgate.authority.reading import sort_documents
from eastgate.dialects import reads
from eastgate.engine import reference
from eastgate.reading.manifests import read_text
from tests.worlds import kuadrant_generate as generate
from tests.worlds.kuadrant_oracle import Call, Manifest, Rulebook
from tests.worlds.test_generated_clusters import authority_of

TO = {None: "gateway:n/g", "one": "route:n/one", "two": "route:n/two"}


def accepted(manifests: list[Manifest]) -> list[Manifest]:
    """Return the manifests without the policies that must be rejected."""
    rulebook = Rulebook(manifests)
    return [one for one in manifests if one["kind"] != "AuthPolicy" or not rulebook.rejected(one)]


def decided(authority: Authority, call: Call, route: str | None) -> Decision:
    claims = None if call.claims is None else json.loads(call.claims)
    question = Question.of(
        "anonymous",
        TO[route],
        port=80,
        method=call.method,
        path=call.path,
        host=call.host,
        sni=call.sni,
        headers=dict(call.headers),
        claims=claims,
    )
    return authority.decide(question)


@settings(max_examples=400, deadline=None)
@given(generate.clusters(), generate.calls)
def test_engine_reference_and_oracle_agree(manifests: list[Manifest], calls: list[Call]) -> None:
    chosen = accepted(manifests)
    authority, rulebook = authority_of(chosen, Settings()), Rulebook(chosen)
    for call in calls:
        for route in TO:
            decision = decided(authority, call, route)
            expected = rulebook.status(call, route)
            assert (decision.status, decision.allowed) == (expected, expected == 200), (route, call, decision.reason)
            assert decision.outcome == reference.decide(decision.layers, decision.arrival.request)
            assert decision.trace().outcome == decision.outcome


@settings(max_examples=200, deadline=None)
@given(generate.clusters())
def test_the_policies_that_the_oracle_rejects_are_rejected_and_no_others(manifests: list[Manifest]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    reading = read_text("generated.json", text, positioned=reads)
    read = sort_documents(reading.documents, Settings(), reading.reporter)
    rulebook = Rulebook(manifests)
    policies = [one for one in manifests if one["kind"] == "AuthPolicy"]
    expected = {one["metadata"]["name"] for one in policies if rulebook.rejected(one)}
    assert {fault.document.name for fault in read.closing} == expected


@settings(max_examples=100, deadline=None)
@given(generate.clusters())
def test_the_policies_in_force_are_those_that_say_so(manifests: list[Manifest]) -> None:
    chosen = accepted(manifests)
    authority, rulebook = authority_of(chosen, Settings()), Rulebook(chosen)
    for host in ("a.toys.com", "b.toys.com"):
        for name, condition in decided(authority, Call(host, "GET", "/"), None).conditions:
            (policy,) = (one for one in chosen if f"AuthPolicy/n/{one['metadata']['name']}" == name)
            target = policy["spec"]["targetRef"]
            in_force = rulebook.in_force(target["kind"], target["name"])
            assert (condition.status == "True") == (policy is in_force), name


@settings(max_examples=60, deadline=None)
@given(generate.clusters(), generate.calls, st.randoms(use_true_random=False))
def test_the_order_of_policies_changes_nothing(
    manifests: list[Manifest], calls: list[Call], random: st.DataObject
) -> None:
    shuffled = accepted(manifests)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = (authority_of(some, Settings()) for some in (accepted(manifests), shuffled))
    for call in calls:
        answers = [decided(authority, call, None) for authority in (one, other)]
        assert len({(answer.status, answer.policy, answer.rule) for answer in answers}) == 1
