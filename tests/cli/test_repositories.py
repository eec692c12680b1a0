"""Every command gives an answer at the root of every layout, and none crashes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from eastgate.cli import main
from eastgate.reading.repository import builds as building

pytestmark = pytest.mark.real  # builds are processes

LAYOUTS = sorted(path for path in (Path(__file__).parent.parent / "repositories").iterdir() if path.is_dir())
COMMANDS = {
    "environments": ["get", "environments", "."],
    "lint": ["lint", "."],
    "policies": ["get", "policies", "-A", "."],
    "workloads": ["get", "workloads", "-A", "."],
    "graph": ["graph", "."],
    "check": ["check", ".", "--from", "anonymous", "--to", "host:example.com", "--port", "443"],
    "diff": ["diff", ".", "."],
}
UNREADABLE = {"malformed", "flux-hostile", "charts-siblings"}
"""The layouts without a readable part, or almost; without helm, a folder of charts."""


@pytest.fixture(autouse=True, scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep builds of this module, so that each layout is built once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("EASTGATE_CACHE", raising=False)
        yield


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda path: path.name)
def test_each_command_answers_at_the_root(layout: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(layout)
    done = CliRunner().invoke(main, COMMANDS[command])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in done.output
    assert done.output.strip()
    assert done.exit_code in ((0, 1, 2, 3) if layout.name in UNREADABLE or command == "lint" else (0, 1, 3)), (
        done.output
    )


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda path: path.name)
def test_what_is_kept_or_built_together_changes_no_answer(
    layout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(layout)

    def answers() -> list[str]:
        return [CliRunner().invoke(main, COMMANDS[command]).output for command in ("lint", "workloads", "policies")]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = [answers(), answers()]
    monkeypatch.setenv("EASTGATE_CACHE", "off")
    monkeypatch.setattr(building, "batches_of", lambda _waiting: [])
    assert found == [answers()] * 2
