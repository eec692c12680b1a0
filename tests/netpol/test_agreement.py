"""On generated clusters np-guard, the oracle and Eastgate agree about every pair of pods and outside addresses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.netpol.analyzer import Connectivity
from tests.worlds import network_generate as generate
from tests.worlds.network_oracle import Ask, Manifest, Network
from tests.worlds.network_product import decide

pytestmark = pytest.mark.netpol

PROTOCOLS = ("tcp", "udp", "sctp")
OUTSIDE = ("8.1.1.1", "8.8.8.8", "8.8.1.1", "9.9.9.9", "1.2.3.4", "200.1.1.1")


@st.composite
def clusters(draw: st.DrawFn) -> list[Manifest]:
    """Draw a cluster, and policies that np-guard reads as upstream does."""
    return [
        *draw(generate.clusters(generate.PODS_BY_SELECTORS)),
        *draw(generate.policies(generate.PODS_BY_SELECTORS)),
    ]


def every_ask(manifests: list[Manifest]) -> Iterator[Ask]:
    """Yield every pair of different pods, and every pod with some outside addresses, on every port."""
    pods = [f"pod:{m['metadata']['namespace']}/{m['metadata']['name']}" for m in manifests if m["kind"] == "Pod"]
    outside = [f"ip:{address}" for address in OUTSIDE]
    pairs = [
        *itertools.permutations(pods, 2),
        *itertools.product(pods, outside),
        *itertools.product(outside, pods),
    ]
    for (source, to), port, protocol in itertools.product(pairs, generate.PORTS, PROTOCOLS):
        yield Ask(source, to, port, protocol)


def by_oracle(manifests: list[Manifest], asks: list[Ask]) -> list[bool | None]:
    network = Network(manifests)
    return [network.decide(ask)[0] for ask in asks]


def by_eastgate(manifests: list[Manifest], asks: list[Ask]) -> list[bool | None]:
    return [decision.allowed for decision in decide(manifests, asks)]


def differences(
    manifests: list[Manifest], decide_all: Callable[[list[Manifest], list[Ask]], list[bool | None]]
) -> list[str]:
    """Return the questions with another answer of np-guard."""
    with TemporaryDirectory() as folder:
        connectivity = Connectivity(manifests, Path(folder))
    asks = list(every_ask(manifests))
    answers = zip(asks, decide_all(manifests, asks), strict=True)
    return [f"{ask}: {answer}" for ask, answer in answers if connectivity.allows(ask) is not answer]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_np_guard_and_the_oracle_agree(manifests: list[Manifest]) -> None:
    assert differences(manifests, by_oracle) == []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_np_guard_and_eastgate_agree(manifests: list[Manifest]) -> None:
    assert differences(manifests, by_eastgate) == []
