"""The option that writes the output of commands into the pages: `pytest tests/docs --update`."""

from __future__ import annotations

import contextlib

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    with contextlib.suppress(ValueError):  # another folder with goldens has it too
        parser.addoption("--update", action="store_true", help="rewrite the expected files")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Return whether to rewrite the pages."""
    return bool(request.config.getoption("--update", default=False))
