"""Every page: commands with output are in console blocks, which the tests run, and all other commands exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from eastgate.cli import main
from tests.docs.blocks import PAGES, ROOT

BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
TEXTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md"), *(ROOT / "conformance").glob("**/*.md")})


def _blocks(page: Path) -> Iterator[tuple[str, str]]:
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield block[1], block[2]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", TEXTS, ids=_name)
def test_a_command_with_its_output_is_in_a_console_block(page: Path) -> None:
    prompts = [(kind, line) for kind, text in _blocks(page) for line in text.splitlines() if line.startswith("$ ")]
    assert {kind for kind, _ in prompts} <= {"console"}
    assert not prompts or page in PAGES


@pytest.mark.real
def test_every_page_with_a_console_block_is_run() -> None:
    listed = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    pages = {ROOT / name for name in listed.stdout.split("\0") if name}
    assert {page for page in pages if any(kind == "console" for kind, _ in _blocks(page))} == set(PAGES)


def _commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each `eastgate` command of a shell block, up to a pipe or redirection."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"\||&&|;", line):
            if part.strip().startswith("eastgate "):
                yield shlex.split(re.split(r"[<>]", part)[0], comments=True)[1:]


@pytest.mark.parametrize("page", TEXTS, ids=_name)
def test_commands_of_shell_blocks_have_only_verbs_and_options_that_exist(page: Path) -> None:
    for kind, text in _blocks(page):
        for words in _commands(text) if kind in ("sh", "bash", "shell") else ():
            if words[0].startswith("-"):
                continue
            command = main.get_command(click.Context(main), words[0])
            assert command is not None, words
            known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
            written = {word.partition("=")[0] for word in words[1:] if word.startswith("--") and word != "--"}
            assert written <= known | {"--help"}, words
