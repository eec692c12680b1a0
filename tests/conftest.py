"""How generated tests run: anew each time on a developer's machine, the same each time in CI. And real servers."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.programs import ApiServer

# A shared machine may stand still for a while, so no single example is held to a deadline.
settings.register_profile("explore", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that tests with the marker `apiserver` share. Nothing is installed on it at first."""
    with ApiServer(tmp_path_factory.mktemp("api-server")) as server:
        yield server
