"""However many policies there are, real proxies take them, and decide as the engine does."""

from __future__ import annotations

import pytest

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
