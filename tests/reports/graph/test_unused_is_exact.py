"""On generated worlds, removing a rule that is reported as unused changes no decision."""

from __future__ import annotations

from hypothesis import event, given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from eastgate.engine import reference
from eastgate.reports.graph.unused import Proof, find_unused, key_of, leave_out
from tests.worlds import access_generate
from tests.worlds.linkerd_oracle import Manifest
from tests.worlds.test_generated_access import every_call, question
from tests.worlds.test_generated_clusters import authority_of, every_request, situations


def check_unused(authority: Authority, asked: list[Question]) -> None:
    unused = [finding for finding in find_unused(authority).rules if finding.proof is Proof.UNUSED]
    event("some rules are unused" if unused else "every rule is needed")
    for asking in asked if unused else ():
        decision = authority.decide(asking)
        request = decision.arrival.request
        for finding in unused:
            layers = [leave_out(layer, frozenset({key_of(finding.origin)})) for layer in decision.layers]
            if not request.refused_path:  # refused in every place where a rule reads paths
                assert reference.decide(layers, request).allowed == decision.allowed, (finding.origin, asking)


@settings(max_examples=25, deadline=None)
@given(situations())
def test_of_policies_on_workloads(situation: tuple[list[Manifest], Settings]) -> None:
    authority = authority_of(*situation)
    asked = [
        Question.of(identity or "anonymous", f"pod:{key}", port=port, method=method, path=path)
        for key in authority.world.workloads
        for identity, port, method, path in every_request()
    ]
    check_unused(authority, asked)


@settings(max_examples=15, deadline=None)
@given(access_generate.policies, access_generate.answers, st.sampled_from(["deny", "proceed"]))
def test_of_access_policies(policies: list[Manifest], answers: dict[str, str], unlisted: str) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    authority = authority_of([*access_generate.FIXED, *policies], chosen)
    targets = ["gateway:n/g", *(f"backend:n/{backend}" for backend in access_generate.BACKENDS)]
    check_unused(authority, [question(call, to, answers) for to in targets for call in every_call("b1")])
