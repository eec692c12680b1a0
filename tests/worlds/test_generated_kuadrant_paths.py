"""On generated AuthPolicies (`kuadrant.io/v1`) the engine, the reference evaluator and the oracle agree.

`make kuadrant` compares the oracle with kuadrant-operator itself.
"""

from __future__ import annotations

from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from eastgate import Decision, Question, Settings
from eastgate.authority.authority import Authority
from eastgate.cluster.points import is_rule_of
from eastgate.cluster.routing.rules import every_rule
from eastgate.dialects.kuadrant.policies.effective import fold
from eastgate.dialects.kuadrant.policies.model import Policy
from eastgate.engine import reference
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.policy import conditions_of
from tests.worlds import kuadrant_paths_generate as generate
from tests.worlds.kuadrant_paths_oracle import Condition, Manifest, Rule, Topology, in_order, is_deleted, key_of
from tests.worlds.kuadrant_requests_oracle import Call, route_call, statuses
from tests.worlds.test_generated_clusters import authority_of


def decide(authority: Authority, call: Call) -> Decision:
    question = Question.of(
        "anonymous",
        f"gateway:{call.gateway}",
        port=call.port,
        method=call.method,
        path=call.path,
        host=call.host,
        headers=dict(call.headers),
        claims=None if call.subject is None else {"sub": call.subject},
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
        path = route_call(topology, call)
        rules = topology.effective(path) if path is not None else None
        if rules is not None:
            assert decision.policy in {f"AuthPolicy/{rule.source}" for rule in rules.values()}, (call, decision.reason)


@settings(max_examples=150, deadline=None)
@given(generate.clusters(whole=True))
def test_effective_rules_are_those_of_the_oracle(manifests: list[Manifest]) -> None:
    authority, topology = authority_of(manifests, Settings()), Topology(manifests)
    paths = {path: topology.effective(path) or {} for path in topology.paths()}
    policies = [policy for policy in authority.policies if isinstance(policy, Policy)]
    for routed in every_rule(authority.world):
        point = routed.point
        assert point.gateway is not None
        route = f"{point.route.namespace}/{point.route.name}"
        gateway = f"{point.gateway.namespace}/{point.gateway.name}"
        (path,) = (
            path
            for path in paths
            if (path.gateway, path.listener, path.kind, path.route)
            == (gateway, point.listener, point.route.kind, route)
            and path.rule == (point.rule_name or f"rule-{point.rule + 1}")
        )
        effective = fold(policy for policy in policies if is_rule_of(point, policy.target) and not policy.deleted)
        rules = {
            str(key): Rule(policy.rules[key].plain(), f"{policy.ref.namespace}/{policy.ref.name}")
            for key, policy in effective.rules.items()
        }
        assert rules == paths[path], path


def conditions(authority: Authority, name: str) -> list[Condition]:
    """Return the conditions in the status of a policy."""
    (policy,) = (each for each in authority.policies if f"{each.ref.namespace}/{each.ref.name}" == name)
    shown = conditions_of(Cluster(authority), policy)
    return [in_order(Condition(each.type, each.status, each.reason, each.message)) for each in shown]


@settings(max_examples=150, deadline=None, phases=[Phase.generate])
@given(generate.clusters(whole=True))
def test_conditions_are_those_of_the_oracle(manifests: list[Manifest]) -> None:
    """Compare the conditions, except of policies on paths that kuadrant-operator treats differently from Gateway API.

    It counts a listener that does not allow the route's namespace if another listener of the Gateway does. It protects
    nothing if the route's hostnames are wider than the listener's. This test has neither case. The status of an object
    in deletion stays unchanged.
    """
    authority, topology = authority_of(manifests, Settings()), Topology(manifests)
    for policy in topology.policies:
        if is_deleted(policy) or not topology.is_routed_as_protected(policy):
            continue
        expected = [in_order(condition) for condition in topology.conditions(policy)]
        assert conditions(authority, key_of(policy)) == expected, key_of(policy)


@settings(max_examples=60, deadline=None)
@given(generate.clusters(), generate.calls, st.randoms(use_true_random=False))
def test_the_order_of_manifests_changes_nothing(manifests: list[Manifest], calls: list[Call], random: Random) -> None:
    shuffled = list(manifests)
    random.shuffle(shuffled)
    authorities = [authority_of(some, Settings()) for some in (manifests, shuffled)]
    for call in calls:
        decisions = [decide(authority, call) for authority in authorities]
        assert len({(decision.status, decision.policy, decision.rule) for decision in decisions}) == 1, call
