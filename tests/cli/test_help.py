"""`--help`: examples that work, options in groups, and lines that fit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from eastgate.cli import main
from eastgate.cli.helping import EXAMPLES, OPTION_GROUPS, OTHER, group_of

Cli = Callable[..., Result]

CONTEXT = click.Context(main)
VERBS = main.list_commands(CONTEXT)
ROOT = Path(__file__).parents[2]
OFFLINE = frozenset(
    {"check", "convert", "describe", "diff", "explain", "get", "graph", "inject", "lint", "test", "why"}
)


def command_of(verb: str) -> click.Command:
    command = main.get_command(CONTEXT, verb)
    assert command is not None
    return command


def options_of(verb: str) -> list[click.Option]:
    options = [each for each in command_of(verb).params if isinstance(each, click.Option)]
    return [option for option in options if not option.hidden]


def test_the_list_of_commands_is_in_groups_and_fits_80_columns() -> None:
    shown = CliRunner().invoke(main, ["--help"], terminal_width=80).output
    assert max(map(len, shown.splitlines())) <= 80
    listed = re.findall(r"^  ([a-z]+) +(.*)$", shown.partition("Ask:")[2], re.MULTILINE)
    assert [verb for verb, _ in listed] == VERBS
    assert all(about.endswith(".") and not about.endswith("...") for _, about in listed)
    assert re.findall(r"^(\w+):$", shown, re.MULTILINE) == ["Options", "Ask", "Review", "Run", "Cluster", "Tools"]


@pytest.mark.parametrize("verb", VERBS)
def test_help_begins_with_examples_and_required_options(verb: str) -> None:
    shown = CliRunner().invoke(main, [verb, "--help"], terminal_width=80).output
    sections = re.findall(r"^([A-Z][\w ]*):$", shown, re.MULTILINE)
    assert sections[0] == "Examples"
    assert f"\n  eastgate {verb}" in shown
    required = [option for option in options_of(verb) if option.required]
    assert ("Required" in sections) is bool(required)
    assert not required or sections[1] == "Required"
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_in_a_group_and_says_what_it_is(verb: str) -> None:
    options = options_of(verb)
    assert [option.name for option in options if group_of(verb, option) == OTHER] == []
    assert [option.name for option in options if not option.help] == []


def test_groups_name_options_that_exist_or_that_are_about_to() -> None:
    known = {max(option.opts, key=len) for verb in VERBS for option in command_of(verb).params}
    assert OPTION_GROUPS.keys() - known <= {
        "--help",
        "--all",
        "--baseline",
        "--explain",
        "--no-token",
        "--write-baseline",
    }


@pytest.mark.parametrize("example", [example for examples in EXAMPLES.values() for example in examples])
def test_an_example_can_be_parsed(example: str) -> None:
    verb, *words = shlex.split(re.split(r"[<>|]", example)[0])
    command_of(verb).make_context(verb, words)


@pytest.mark.parametrize(
    "example",
    [
        example
        for verb, examples in EXAMPLES.items()
        for example in examples
        if verb in OFFLINE and "examples/" in example
    ],
)
def test_an_example_of_the_repository_works(
    cli: Cli, example: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    text, _, redirected = example.partition("<")
    given = Path(redirected.strip()).read_text() if redirected else None
    result = cli(*shlex.split(text.partition(">")[0]), stdin=given)
    assert result.exit_code in (0, 1), result.output


def test_each_verb_has_two_to_four_examples() -> None:
    assert EXAMPLES.keys() == set(VERBS)
    assert {len(examples) for examples in EXAMPLES.values()} <= {2, 3, 4}
