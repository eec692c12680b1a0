"""The mesh that the tests of agents share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agents.running import AgentMesh


@pytest.fixture(scope="session")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentMesh]:
    with AgentMesh(tmp_path_factory.mktemp("agents")) as running:
        yield running


@pytest.fixture
def agents(_running: AgentMesh) -> Iterator[AgentMesh]:
    """Return the mesh. Its authorizer allows everything at first. Sessions are closed after each test."""
    _running.behave("allow")
    yield _running
    _running.behave("allow")
    _running.close_agents()
