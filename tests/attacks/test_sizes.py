"""Real proxies accept any number of policies, and decide as the engine does."""

from __future__ import annotations

import pytest

from tests.attacks.gateway_sizes import GATEWAY_SETS, MANY_AT_A_GATEWAY
from tests.attacks.placements import PLACEMENTS
from tests.attacks.sizes import MANY, SETS
from tests.differential.asking import Ask
from tests.differential.bench import Bench


@pytest.mark.parametrize("number", [5, 100, MANY])
@pytest.mark.parametrize("name", SETS)
def test_many_tests_of_one_kind_are_enforced(bench: Bench, name: str, number: int) -> None:
    sized = SETS[name](number)
    authority = bench.enforce(sized.policies)
    assert not bench.rejected, bench.rejected[0].message[:500]
    asks = [Ask(sample.caller, "a/p0", 80, sample.http) for sample in sized.samples]
    wanted = [sample.allowed for sample in sized.samples]
    assert [authority.decide(ask.question()).allowed for ask in asks] == wanted
    assert [answer.allowed for answer in bench.ask(asks)] == wanted


@pytest.mark.parametrize("number", [5, 100, MANY_AT_A_GATEWAY])
@pytest.mark.parametrize("name", GATEWAY_SETS)
def test_many_tests_of_one_kind_are_enforced_at_a_gateway(bench: Bench, name: str, number: int) -> None:
    sized = GATEWAY_SETS[name](number)
    gateway = next(placement for placement in PLACEMENTS if placement.is_gateway).at(bench)
    gateway.enforce(sized.policies)
    for caller in dict.fromkeys(sample.caller for sample in sized.samples):
        samples = [sample for sample in sized.samples if sample.caller == caller]
        asked = [sample.http for sample in samples if sample.http is not None]
        attacker = gateway.of(caller)
        assert [attacker.denial(http) is None for http in asked] == [sample.allowed for sample in samples]
        arrived = [verdict.arrived is not None for verdict in attacker.verdicts(asked)]
        assert arrived == [sample.allowed for sample in samples]
