"""A command does not import modules that it does not need: starting is most of the time of a short command."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import click
import pytest
from click.testing import CliRunner

from eastgate.cli import main
from tests.cli.conftest import SHOP

CHECK = ["check", "-f", str(SHOP), "--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080"]
DECIDING = (
    CHECK,
    ["explain", *CHECK[1:]],
    ["get", "policies", "-f", str(SHOP)],
    ["test", str(SHOP.parent)],
    ["version"],
)
ANALYZING = (["describe", "pod", "cart", "-n", "shop", "-f", str(SHOP)], ["lint", str(SHOP)])
HELP = (["--help"], ["up", "--help"], ["call", "--help"], ["why", "--help"])

RUNNING = {"asyncio", "envoy", "google.protobuf", "grpc", "prometheus_client", "rich", "watchfiles"}
SCHEMES = {
    "cel_expr_python",
    "cryptography",
    "eastgate.dialects.kuadrant.authorino.evaluate",
    "eastgate.dialects.kuadrant.rego",
    "joserfc",
    "re2",
}
READING = {"msgspec", "pathspec", "subprocess", "tempfile", "xml"}


def _imported(words: list[str]) -> set[str]:
    """Return the modules that a command has imported when it ends."""
    program = (
        "import json, sys\nfrom eastgate.cli import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit as end:\n    assert end.code == 0, end.code\n"
        "print(json.dumps(list(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", [*DECIDING, *ANALYZING, *HELP], ids=" ".join)
def test_the_mesh_is_imported_only_to_run_it(words: list[str]) -> None:
    assert (RUNNING - {"asyncio"}) & _imported(words) == set()


@pytest.mark.parametrize("words", DECIDING, ids=" ".join)
def test_a_short_command_imports_nothing_that_runs_a_mesh_or_evaluates_schemes(words: list[str]) -> None:
    assert (RUNNING | SCHEMES) & _imported(words) == set()


def test_a_check_imports_only_what_reads_and_decides() -> None:
    modules = _imported(CHECK)
    assert READING & modules == set()
    rooms = ("convert", "envoy", "gateway", "identity", "languages", "mesh", "reports")
    assert {f"eastgate.{room}" for room in rooms} & modules == set()


def test_a_check_imports_what_reads_a_dialect_only_for_documents_of_it() -> None:
    modules = _imported(CHECK)
    for dialect in ("accesspolicy", "kuadrant", "linkerd"):
        for part in ("lint", "meaning", "reading", "shapes"):
            assert f"eastgate.dialects.{dialect}.{part}" not in modules


def test_the_library_imports_a_name_when_it_is_used() -> None:
    program = "import sys, eastgate\nprint([name for name in sys.modules if name.startswith('eastgate.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['eastgate._version']"


def test_the_list_of_verbs_imports_none_and_says_what_each_says_of_itself() -> None:
    modules = _imported(["--help"])
    assert [name for name in modules if name.startswith("eastgate.cli.")] == []
    context = click.Context(main)
    lines = {}
    for verb in main.list_commands(context):
        command = main.get_command(context, verb)
        assert command is not None
        assert import_module(command.callback.__module__).__name__.startswith("eastgate.cli.")
        lines[verb] = command.get_short_help_str(1000)
    listed = CliRunner().invoke(main, ["--help"], terminal_width=1000, max_content_width=1000).output
    groups = listed.partition("Ask:\n")[2].splitlines()
    shown = dict(line.split(maxsplit=1) for line in groups if line.startswith("  "))
    assert shown == lines
