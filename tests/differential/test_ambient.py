"""Node proxies and waypoints decide as the engine does: on generated policies, for many requests over real tunnels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from os import getpid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eastgate.settings import MeshMode
from tests.differential.bench import Bench
from tests.differential.corpus import asks
from tests.differential.policies import ambient_policy_sets
from tests.differential.running import Tally, compare, enforced
from tests.differential.world import SETTINGS, Manifest

_AMBIENT = replace(SETTINGS, mesh_mode=MeshMode.AMBIENT)
_SETS = 20
_FEWEST = 1_000


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench(f"ambient-{getpid()}", settings=_AMBIENT) as bench:
        yield bench


def test_generated_policies(bench: Bench) -> None:
    tally = Tally()

    @settings(max_examples=_SETS, deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
    @given(ambient_policy_sets(), st.integers(0, 2**32))
    def run(policies: list[Manifest], sample: int) -> None:
        authority = enforced(bench, policies, _AMBIENT)
        if authority is not None:
            for found in compare(bench, authority, policies, list(asks(sample, 6, 3)), tally):
                raise found

    run()
    print(tally)
    for late in tally.late:
        print(late[:400])
    assert tally.decisions >= _FEWEST, tally
    assert tally.kinds["allowed"] > _FEWEST / 10 < tally.kinds["403"] + tally.kinds["closed"], tally
    assert len(tally.late) <= tally.decisions / 200, tally.late
