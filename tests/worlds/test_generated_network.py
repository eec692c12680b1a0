"""On generated clusters with network policies the engine, the reference evaluator and the oracle agree."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.engine import reference
from tests.worlds import network_generate as generate
from tests.worlds.network_oracle import KINDS, Ask, Manifest, Network
from tests.worlds.network_product import decide

Situation = tuple[list[Manifest], list[Ask]]


@settings(max_examples=60, deadline=None)
@given(generate.situations())
def test_engine_reference_and_oracle_agree(situation: Situation) -> None:
    manifests, asks = situation
    network = Network(manifests)
    for ask, decision in zip(asks, decide(manifests, asks), strict=True):
        expected, names = network.decide(ask)
        assert expected is None or decision.allowed == expected, (ask, names, decision.reason)
        assert reference.decide(decision.layers, decision.arrival.request).allowed == decision.allowed
        if not decision.allowed:
            assert decision.status == 0
            assert expected is None or str(decision.policy or "none") in names, (ask, names)


@settings(max_examples=25, deadline=None)
@given(generate.situations(), st.randoms(use_true_random=False))
def test_the_order_of_policies_changes_nothing(situation: Situation, random: st.DataObject) -> None:
    manifests, asks = situation
    policies = [manifest for manifest in manifests if manifest["kind"] in KINDS]
    random.shuffle(policies)  # type: ignore[attr-defined]
    shuffled = [*(manifest for manifest in manifests if manifest["kind"] not in KINDS), *policies]
    before, after = decide(manifests, asks), decide(shuffled, asks)
    assert [decision.allowed for decision in before] == [decision.allowed for decision in after]
