"""The option that rewrites the goldens: `pytest tests/reports/lint --update`."""

from __future__ import annotations

import contextlib

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    with contextlib.suppress(ValueError):  # another folder with goldens defines the option too
        parser.addoption("--update", action="store_true", help="write what came out into the expected files")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Return whether to rewrite the goldens."""
    return bool(request.config.getoption("--update", default=False))
