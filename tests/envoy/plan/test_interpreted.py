"""On generated policies, the emitted configuration agrees with the engine."""

from __future__ import annotations

import itertools

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eastgate import ManifestError, Question, Settings
from tests.differential.bench import authority_of
from tests.differential.corpus import asks
from tests.differential.policies import chosen_settings, policy_sets
from tests.differential.world import PODS, PORTS, WORLD
from tests.envoy.plan.emitting import Manifest, difference, interpreters, sent_of
from tests.envoy.plan.interpreter import Sent
from tests.worlds import generate
from tests.worlds.test_generated_clusters import every_request

_PLACES = {pod: f"127.64.0.{number}" for number, pod in enumerate(PODS, 2)}


@settings(max_examples=120)
@given(policy_sets(), chosen_settings(), st.integers(0, 2**32))
def test_every_trick_is_decided_as_the_engine_decides_it(
    policies: list[Manifest], chosen: Settings, sample: int
) -> None:
    try:
        authority = authority_of([*WORLD, *policies], chosen)
    except ManifestError:
        assume(False)
    authority.assign_addresses(_PLACES)
    proxies = interpreters(authority, PODS, list(PORTS))
    for ask in (one.located(_PLACES) for one in asks(sample, 4, 2)):
        proxy_outcome = proxies[ask.pod, ask.port].say(sent_of(ask))
        assert difference(authority, ask.question(), proxy_outcome, http=ask.is_plain) is None, ask


@settings(max_examples=80)
@given(generate.clusters(ambient=False), st.sampled_from(["deny", "allow"]))
def test_generated_clusters_are_decided_as_the_engine_decides_them(manifests: list[Manifest], deny_only: str) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "denyOnly": deny_only})
    authority = authority_of(manifests, chosen)
    proxies = interpreters(authority, list(authority.world.workloads), generate.PORTS)
    for workload, (identity, port, method, path) in itertools.product(authority.world.workloads, every_request()):
        proxy_outcome = proxies[workload, port].say(Sent(identity, "127.0.0.1", method, path))
        question = Question.of(
            identity or "anonymous", f"pod:{workload}", port=port, method=method, path=path, host="h", headers={}
        )
        assert difference(authority, question, proxy_outcome, http=True) is None, question
        if proxy_outcome.allowed and proxy_outcome.audit:
            would = authority.decide(question).would_be
            assert proxy_outcome.audit.startswith("200:") is would.allowed, (question, proxy_outcome.audit, would)
