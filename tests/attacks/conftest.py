"""Tests may be coroutines, and each has a runtime folder of its own, as in the tests of faults."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.attacks import placements
from tests.attacks.agents import AgentBench
from tests.attacks.edge import Edge
from tests.attacks.placements import PLACEMENTS, Attacked, Placement
from tests.differential.bench import Bench
from tests.faults.conftest import pytest_pyfunc_call, runtime

__all__ = [
    "agents",
    "attacked",
    "attacked_by_host",
    "attacked_gateway",
    "bench",
    "edge",
    "placement",
    "pytest_pyfunc_call",
    "runtime",
]


@pytest.fixture(scope="package")
def bench() -> Iterator[Bench]:
    """What all placements are on."""
    with placements.bench() as running:
        yield running


@pytest.fixture(scope="package", params=PLACEMENTS, ids=str)
def attacked(request: pytest.FixtureRequest, bench: Bench) -> Attacked:
    """Every placement, one after the other."""
    placed: Attacked = request.param.at(bench)
    return placed


@pytest.fixture
def placement(request: pytest.FixtureRequest) -> Placement:
    """The placement that is `attacked`."""
    placed: Placement = request.node.callspec.params["attacked"]
    return placed


@pytest.fixture(scope="package", params=[one for one in PLACEMENTS if one.any_host], ids=str)
def attacked_by_host(request: pytest.FixtureRequest, bench: Bench) -> Attacked:
    """Every placement at which a request arrives whatever its host is."""
    placed: Attacked = request.param.at(bench)
    return placed


@pytest.fixture(
    scope="package", params=[one for one in PLACEMENTS if one.is_gateway and "mTLS" not in str(one)], ids=str
)
def attacked_gateway(request: pytest.FixtureRequest, bench: Bench) -> Attacked:
    """A placement with routes in plaintext, and one over TLS: who is asking does not matter to them."""
    placed: Attacked = request.param.at(bench)
    return placed


@pytest.fixture(scope="package")
def agents() -> Iterator[AgentBench]:
    """Gateways with MCP servers behind them."""
    with AgentBench(f"attacked-agents-{os.getpid()}") as bench:
        yield bench


@pytest.fixture(scope="package")
def edge() -> Iterator[Edge]:
    """A gateway with HTTPS listeners and a gRPC route."""
    with Edge(f"attacked-edge-{os.getpid()}") as bench:
        yield bench
