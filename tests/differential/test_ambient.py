"""Node proxies and waypoints decide as the engine does, and as sidecars do, on generated policies and requests."""

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
from tests.differential.policies import ambient_policy_sets, policy_sets
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
    @given(st.one_of(ambient_policy_sets(), policy_sets()), st.integers(0, 2**32))
    def run(policies: list[Manifest], sample: int) -> None:
        authority = enforced(bench, policies, _AMBIENT)
        if authority is not None:
            for found in compare(bench, authority, policies, list(asks(sample, 6, 3)), tally):
                raise found

    run()
    assert tally.decisions >= _FEWEST, tally
    assert tally.kinds["allowed"] > _FEWEST / 10 < tally.kinds["403"] + tally.kinds["closed"], tally
    assert len(tally.late) <= tally.decisions / 200, tally.late


def test_sidecars_and_node_proxies_decide_alike(bench: Bench) -> None:
    tally = Tally()
    with Bench(f"sidecars-{getpid()}") as sidecars:

        @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
        @given(policy_sets(), st.integers(0, 2**32))
        def run(policies: list[Manifest], sample: int) -> None:
            if enforced(bench, policies, _AMBIENT) is None or enforced(sidecars, policies, SETTINGS) is None:
                return
            asked = list(asks(sample, 4, 3))
            ambient, beside = (each.ask([each.located(ask) for ask in asked]) for each in (bench, sidecars))
            for ask, one, other in zip(asked, ambient, beside, strict=True):
                tally.decisions += 1
                assert (one.allowed, one.status) == (other.allowed, other.status), (ask, one, other, policies)

        run()
    assert tally.decisions >= 300, tally
