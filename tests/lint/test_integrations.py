"""The hooks of pre-commit and the GitHub Action call commands and options that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml
from click import Command, Context

from eastgate.cli import main

ROOT = Path(__file__).parents[2]


def command_named(name: str) -> Command:
    found = main.get_command(Context(main), name)
    assert found is not None, name
    return found


def options_of(command: Command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def test_the_hooks_call_commands_that_exist() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert {hook["id"] for hook in hooks} == {"eastgate-lint", "eastgate-test"}
    for hook in hooks:
        program, command = hook["entry"].split()
        assert program == "eastgate"
        assert command_named(command).name == command
        assert hook["language"] == "python"


def action() -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return told


def test_the_action_uses_each_of_its_inputs_and_only_options_that_exist() -> None:
    told = action()
    assert told["runs"]["using"] == "composite"
    text = (ROOT / "action.yml").read_text("utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(told["inputs"])
    scripts = "\n".join(step.get("run", "") for step in told["runs"]["steps"])
    lint_line = [line for line in scripts.splitlines() if "pip" not in line]
    assert set(re.findall(r"(?<!\S|-)\(?(--[a-z-]+)", "\n".join(lint_line))) <= options_of(command_named("lint"))


def test_no_input_is_pasted_into_a_script() -> None:
    for step in action()["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert "run" not in step or step["shell"] == "bash"


def test_the_scripts_are_bash() -> None:
    for step in action()["runs"]["steps"]:
        if "run" in step:
            checked = subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True, check=False)
            assert checked.returncode == 0, checked.stderr
