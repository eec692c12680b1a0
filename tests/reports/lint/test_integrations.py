"""The hooks of pre-commit and the GitHub Action use existing commands and options."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from click import Command, Context

from eastgate.cli import main

ROOT = Path(__file__).parents[3]


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


def _lint_step(tmp_path: Path, where: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the action's step as a runner does, with the defaults of omitted inputs."""
    told = action()
    (step,) = (one for one in told["runs"]["steps"] if one.get("name") == "Lint")
    program = tmp_path / "bin/eastgate"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m eastgate "$@"\n')
    program.chmod(0o755)
    values = {name: one["default"] for name, one in told["inputs"].items()} | inputs
    names = {variable: value.strip("${} ").removeprefix("inputs.") for variable, value in step["env"].items()}
    env = {**os.environ, **{variable: values[name] for variable, name in names.items()}}
    env["PATH"] = f"{program.parent}{os.pathsep}{env['PATH']}"
    script = ["bash", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(script, cwd=where, env=env, text=True, capture_output=True, check=False)


def test_the_defaults_of_the_action_work_on_this_repository(tmp_path: Path) -> None:
    done = _lint_step(tmp_path, ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "::error" not in done.stdout


def test_the_inputs_of_the_action_reach_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    (folder / "drafts").mkdir(parents=True)
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
    (folder / "pod.yaml").write_text(pod)
    (folder / "package.json").write_text("{}")
    (folder / "drafts/broken.yaml").write_text("apiVersion: v1\nkind: [\n")
    assert _lint_step(tmp_path, folder).returncode == 1
    done = _lint_step(tmp_path, folder, exclude="drafts/\n*.txt\n", namespace="shop", sarif="out.sarif")
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "out.sarif").exists()
