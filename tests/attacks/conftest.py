"""Tests may be coroutines, and each has a runtime folder of its own, as in the tests of faults."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.attacks.agents import AgentBench
from tests.attacks.placements import PLACEMENTS, Attacked, Trust
from tests.faults.conftest import pytest_pyfunc_call, runtime

__all__ = ["agents", "attacked", "attacked_by_host", "pytest_pyfunc_call", "runtime"]


@pytest.fixture(scope="module", params=PLACEMENTS, ids=str)
def attacked(request: pytest.FixtureRequest) -> Iterator[Attacked]:
    """Every placement, one after the other."""
    with request.param.start(Trust()) as running:
        yield running


@pytest.fixture(scope="module", params=[one for one in PLACEMENTS if one.any_host], ids=str)
def attacked_by_host(request: pytest.FixtureRequest) -> Iterator[Attacked]:
    """Every placement at which a request arrives whatever its host is."""
    with request.param.start(Trust()) as running:
        yield running


@pytest.fixture(scope="session")
def agents() -> Iterator[AgentBench]:
    """Gateways with MCP servers behind them."""
    with AgentBench(f"attacked-agents-{os.getpid()}") as bench:
        yield bench
