"""Tests may be coroutines. Each has its own runtime folder, as in the tests of faults."""

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
    """Return the bench with all placements."""
    with placements.bench() as running:
        yield running


@pytest.fixture(scope="package", params=PLACEMENTS, ids=str)
def attacked(request: pytest.FixtureRequest, bench: Bench) -> Attacked:
    """Return every placement, one after the other."""
    placed: Attacked = request.param.at(bench)
    return placed


@pytest.fixture
def placement(request: pytest.FixtureRequest) -> Placement:
    """Return the placement that is `attacked`."""
    placed: Placement = request.node.callspec.params["attacked"]
    return placed


@pytest.fixture(scope="package", params=[one for one in PLACEMENTS if one.any_host], ids=str)
def attacked_by_host(request: pytest.FixtureRequest, bench: Bench) -> Attacked:
    """Return every placement that accepts requests with any host."""
    placed: Attacked = request.param.at(bench)
    return placed


@pytest.fixture(
    scope="package", params=[one for one in PLACEMENTS if one.is_gateway and "mTLS" not in str(one)], ids=str
)
def attacked_gateway(request: pytest.FixtureRequest, bench: Bench) -> Attacked:
    """Return a placement with routes in plaintext, and one over TLS. Their routes do not depend on the caller."""
    placed: Attacked = request.param.at(bench)
    return placed


@pytest.fixture(scope="package")
def agents() -> Iterator[AgentBench]:
    """Return gateways with MCP servers behind them."""
    with AgentBench(f"attacked-agents-{os.getpid()}") as bench:
        yield bench


@pytest.fixture(scope="package")
def edge() -> Iterator[Edge]:
    """Return a gateway with HTTPS listeners and a gRPC route."""
    with Edge(f"attacked-edge-{os.getpid()}") as bench:
        yield bench
