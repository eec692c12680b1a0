"""What the page about describing shows is what the commands print; `pytest tests/analysis --update` writes it.

A line `...` stands for lines that are left out.
"""

from __future__ import annotations

import re
import shlex

import pytest
from click.testing import CliRunner

from eastgate.analysis.describing import findings
from eastgate.cli import main
from tests.analysis.world import ROOT

PAGE = ROOT / "docs" / "describing.md"
BLOCK = re.compile(r"```console\n\$ eastgate (?P<command>[^\n]*)\n(?P<output>.*?)```", re.DOTALL)
COMMANDS = [match["command"] for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_block_of_the_page_is_what_the_command_prints(
    command: str, update: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_lint(name: str) -> object:
        raise ImportError(name)  # its findings have pages of their own

    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(findings, "import_module", no_lint)
    result = CliRunner().invoke(main, shlex.split(command), catch_exceptions=False)
    page = PAGE.read_text(encoding="utf-8")
    shown = next(match["output"] for match in BLOCK.finditer(page) if match["command"] == command)
    if update and "\n...\n" not in shown:
        PAGE.write_text(page.replace(f"{command}\n{shown}```", f"{command}\n{result.stdout}```"), encoding="utf-8")
        shown = result.stdout
    pattern = ".*".join(re.escape(part) for part in re.split(r"(?m)^\.\.\.\n", shown))
    assert re.fullmatch(pattern, result.stdout, re.DOTALL), result.stdout
