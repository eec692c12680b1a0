"""The mesh that the tests of agents share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agents.running import AgentMesh


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentMesh]:
    with AgentMesh(tmp_path_factory.mktemp("agents")) as running:
        yield running
