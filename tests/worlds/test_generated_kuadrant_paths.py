"""On generated AuthPolicies of today the engine, the reference evaluator and the oracle give the same answers.

`make kuadrant` compares the oracle with kuadrant-operator itself.
"""

from __future__ import annotations

from hypothesis import given, settings

from eastgate import Decision, Question, Settings
from eastgate.api.authority import Authority
from eastgate.engine import reference
from tests.worlds import kuadrant_paths_generate as generate
from tests.worlds.kuadrant_paths_oracle import Manifest, Topology
from tests.worlds.kuadrant_requests_oracle import Call, statuses
from tests.worlds.test_generated_clusters import authority_of


def decide(authority: Authority, call: Call) -> Decision:
    headers = dict(call.headers)
    question = Question(
        "anonymous", f"gateway:{call.gateway}", call.port, call.method, call.path, call.host, headers=headers
    )
    return authority.decide(question)


@settings(max_examples=300, deadline=None)
@given(generate.clusters(), generate.calls)
def test_engine_reference_and_oracle_agree(manifests: list[Manifest], calls: list[Call]) -> None:
    authority, topology = authority_of(manifests, Settings()), Topology(manifests)
    for call in calls:
        decision = decide(authority, call)
        expected = statuses(topology, call)
        assert decision.status in expected, (call, decision.status, expected, decision.reason)
        assert decision.allowed == (decision.status == 200)
        assert decision.outcome == reference.decide(decision.layers, decision.arrival.request)
        assert decision.trace().outcome == decision.outcome
