"""The option that rewrites the goldens: `pytest tests/broken --update`."""

from __future__ import annotations

import contextlib

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    with contextlib.suppress(ValueError):  # another folder with goldens has it too
        parser.addoption("--update", action="store_true", help="rewrite the expected files")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Return whether to rewrite the goldens."""
    return bool(request.config.getoption("--update", default=False))
