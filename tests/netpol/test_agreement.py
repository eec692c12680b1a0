"""On generated clusters np-guard and the oracle give the same answers about every pair of pods, and about outside."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.netpol.analyzer import Connectivity
from tests.worlds import network_generate as generate
from tests.worlds.network_oracle import Ask, Manifest, Network

pytestmark = pytest.mark.netpol

PROTOCOLS = ("tcp", "udp", "sctp")
OUTSIDE = ("8.1.1.1", "8.8.8.8", "8.8.1.1", "9.9.9.9", "1.2.3.4", "200.1.1.1")


@st.composite
def clusters(draw: st.DrawFn) -> list[Manifest]:
    """A cluster, and policies that np-guard reads as upstream does."""
    return [
        *draw(generate.clusters(generate.PODS_BY_SELECTORS)),
        *draw(generate.policies(generate.PODS_BY_SELECTORS)),
    ]


def every_ask(manifests: list[Manifest]) -> Iterator[Ask]:
    """Every pair of different pods, and every pod with some addresses outside, on every port."""
    pods = [f"pod:{m['metadata']['namespace']}/{m['metadata']['name']}" for m in manifests if m["kind"] == "Pod"]
    outside = [f"ip:{address}" for address in OUTSIDE]
    pairs = [
        *itertools.permutations(pods, 2),
        *itertools.product(pods, outside),
        *itertools.product(outside, pods),
    ]
    for (source, to), port, protocol in itertools.product(pairs, generate.PORTS, PROTOCOLS):
        yield Ask(source, to, port, protocol)


def differences(manifests: list[Manifest]) -> list[str]:
    """Where np-guard and the oracle differ."""
    network = Network(manifests)
    with TemporaryDirectory() as folder:
        connectivity = Connectivity(manifests, Path(folder))
    return [
        f"{ask}: np-guard {connectivity.allows(ask)}, the oracle {network.decide(ask)}"
        for ask in every_ask(manifests)
        if connectivity.allows(ask) is not network.decide(ask)[0]
    ]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_np_guard_and_the_oracle_agree(manifests: list[Manifest]) -> None:
    assert differences(manifests) == []
