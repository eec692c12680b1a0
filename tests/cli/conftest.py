from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eastgate.cli import main

SHOP = Path(__file__).parents[2] / "examples" / "shop" / "manifests"

Cli = Callable[..., Result]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs the command in an empty folder, without colors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, list(words), input=stdin, catch_exceptions=False)

    return run


@pytest.fixture
def shop() -> str:
    return str(SHOP)
