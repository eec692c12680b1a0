"""`version`, `completion`, help."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eastgate import __version__
from tests.cli.conftest import Cli


def test_version_says_what_it_reads(cli: Cli) -> None:
    assert cli("version").stdout.startswith(f"eastgate {__version__}")
    reads = json.loads(cli("version", "-o", "json").stdout)["reads"]
    assert "gateway.networking.x-k8s.io/v1alpha2 AuthorizationPolicy" in reads
    assert __version__ in cli("--version").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(cli: Cli, shell: str) -> None:
    script = cli("completion", shell).stdout
    assert "_EASTGATE_COMPLETE" in script


def complete(words: str) -> list[str]:
    environment = {**os.environ, "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    environment["_EASTGATE_COMPLETE"] = "bash_complete"
    program = "from eastgate.cli import main; main(prog_name='eastgate')"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.real
def test_sources_and_destinations_are_completed_from_the_manifests(shop: str) -> None:
    assert "sa:shop/web" in complete(f"eastgate check -f {shop} --from sa:shop/w")
    assert complete(f"eastgate check -f {shop} --to service:") == ["service:", "service:shop/cart"]


@pytest.mark.real
def test_auth_configs_and_their_hosts_are_completed() -> None:
    folder = Path(__file__).parents[2] / "examples" / "authorino" / "manifests"
    configs = ["authconfig:edge/pages", "authconfig:talker/talker-api"]
    assert complete(f"eastgate check -f {folder} --to authconfig:") == ["authconfig:", *configs]
    assert complete(f"eastgate check -f {folder} --to host:") == ["host:", "host:talker-api.example"]


def test_every_command_has_help(cli: Cli) -> None:
    listed = cli("--help").stdout
    for command in ("check", "explain", "test", "version", "completion"):
        assert command in listed
        assert cli(command, "--help").exit_code == 0


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("chek",), "Did you mean 'check'?"),
        (("Explain",), "Did you mean 'explain'?"),
        (("tests", "x.yaml"), "Did you mean 'test'?"),
        (("check", "--fron", "sa:a/b"), "'--from'"),
        (("up", "--metric", "9000"), "'--metrics'"),
    ],
)
def test_a_misspelt_command_or_option_gets_a_suggestion(cli: Cli, words: tuple[str, ...], meant: str) -> None:
    result = cli(*words)
    assert result.exit_code == 2
    assert meant in result.stderr


def test_a_command_that_is_like_none_gets_no_suggestion(cli: Cli) -> None:
    assert "No such command 'frobnicate'.\n" in cli("frobnicate").stderr
