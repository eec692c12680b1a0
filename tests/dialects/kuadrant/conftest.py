"""The option that rewrites the goldens: `pytest tests/dialects/kuadrant --update`."""

from __future__ import annotations

import contextlib

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    with contextlib.suppress(ValueError):  # another folder with goldens has it too
        parser.addoption("--update", action="store_true", help="write what came out into the expected files")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Return whether the goldens are to be written."""
    return bool(request.config.getoption("--update", default=False))
