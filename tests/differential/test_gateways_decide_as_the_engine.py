"""Real gateways decide as the engine does, on generated routes and policies, over HTTP/1, HTTP/2 and TLS."""

from __future__ import annotations

from collections.abc import Iterator
from os import getpid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eastgate import Settings
from tests.differential.gateways.bench import GatewayBench
from tests.differential.gateways.corpus import asks
from tests.differential.gateways.drawing import chosen_settings, worlds
from tests.differential.gateways.running import compare_gateway, compare_streams, enforced_at_gateway
from tests.differential.running import Tally
from tests.differential.world import Manifest

_WORLDS = 45
_MIN_DECISIONS = 2_000


@pytest.fixture(scope="module")
def bench() -> Iterator[GatewayBench]:
    with GatewayBench(f"gateways-{getpid()}") as bench:
        yield bench


def test_generated_gateways(bench: GatewayBench) -> None:
    tally = Tally()

    @settings(max_examples=_WORLDS, deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
    @given(worlds(), chosen_settings(), st.integers(0, 2**32))
    def run(manifests: list[Manifest], chosen: Settings, sample: int) -> None:
        authority = enforced_at_gateway(bench, manifests, chosen)
        if authority is not None:
            for found in compare_gateway(bench, authority, manifests, list(asks(manifests, sample, 6, 5)), tally):
                raise found
            for difference in compare_streams(bench, authority, manifests, sample, tally):
                raise difference

    run()
    assert tally.decisions >= _MIN_DECISIONS, tally
    refused = sum(tally.kinds[status] for status in ("401", "403", "404"))
    assert tally.kinds["allowed"] > _MIN_DECISIONS / 20 < refused, tally
    assert min(tally.kinds[kind] for kind in ("HTTP", "HTTPS", "HTTP/1.1", "HTTP/2", "asked")) > _MIN_DECISIONS / 10, (
        tally
    )
    assert min(tally.kinds[kind] for kind in ("passed through", "not passed through")) > 0, tally
    assert len(tally.late) <= tally.decisions / 200, tally.late
