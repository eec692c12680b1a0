"""The GitHub Action that comments a diff on a pull request, and the workflow of the shop that uses it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import Context

from eastgate.cli import main
from eastgate.reports.diff.words import MARK

ROOT = Path(__file__).parents[3]
SHOP = ROOT / "examples/shop"

GH = r"""#!/bin/sh
printf '%s\n' "$*" >> "$GH_CALLS"
case "$*" in
  *--jq*) cat "$GH_BEFORE" ;;
  *) for word in "$@"; do case "$word" in body=@*) cat "${word#body=@}" > "$GH_BODY" ;; esac; done ;;
esac
"""


def action() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "actions/diff/action.yml").read_text("utf-8"))
    return read


def workflow() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((SHOP / ".github/workflows/policies.yaml").read_text("utf-8"))
    return read


def test_the_action_uses_each_of_its_inputs_and_only_options_that_exist() -> None:
    text = (ROOT / "actions/diff/action.yml").read_text("utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(action()["inputs"])
    command = main.get_command(Context(main), "diff")
    assert command is not None
    (compare,) = (step for step in action()["runs"]["steps"] if step.get("name") == "Compare")
    used = set(re.findall(r"(?<=[ (])--[a-z][a-z-]*", compare["run"]))
    assert used <= {option for parameter in command.params for option in parameter.opts}


def test_no_input_is_pasted_into_a_script() -> None:
    for step in action()["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert "run" not in step or step["shell"] == "bash"


def test_the_comment_is_found_again_by_its_first_line() -> None:
    (comment,) = (step for step in action()["runs"]["steps"] if step.get("name") == "Comment")
    assert MARK in comment["run"]


def test_the_workflow_of_the_shop_uses_the_action() -> None:
    checkout, diff = workflow()["jobs"]["diff"]["steps"]
    assert checkout["with"]["fetch-depth"] == 0
    assert diff["uses"].partition("@")[0].endswith("/actions/diff")
    assert diff["with"].keys() <= action()["inputs"].keys()
    assert workflow()["permissions"]["pull-requests"] == "write"


class Runner:
    """Runs the steps of the action in a repository, as GitHub's runner does."""

    def __init__(self, folder: Path) -> None:
        self.repository = folder / "repository"
        shutil.copytree(SHOP / "manifests", self.repository / "manifests")
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        commands = folder / "bin"
        commands.mkdir()
        for name, text in (("eastgate", f'#!/bin/sh\nexec {sys.executable} -m eastgate "$@"\n'), ("gh", GH)):
            (commands / name).write_text(text)
            (commands / name).chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_OUTPUT": str(self.temporary / "output"),
            "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
            "GH_CALLS": str(self.temporary / "calls"),
            "GH_BODY": str(self.temporary / "body"),
            "GH_BEFORE": str(self.temporary / "before"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example",
        }
        (self.temporary / "before").write_text("")
        self.git("init", "--quiet", "--initial-branch=main")
        self.base = self.commit()

    def git(self, *words: str) -> str:
        ran = subprocess.run(
            ["git", *words], cwd=self.repository, env=self.environment, text=True, capture_output=True, check=True
        )
        return ran.stdout.strip()

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")
        return self.git("rev-parse", "HEAD")

    def edit(self, before: str, after: str) -> None:
        path = self.repository / "manifests/policies.yaml"
        text = path.read_text("utf-8")
        assert before in text
        path.write_text(text.replace(before, after, 1), encoding="utf-8")
        self.commit()

    def step(self, name: str, **values: str) -> subprocess.CompletedProcess[str]:
        (step,) = (each for each in action()["runs"]["steps"] if each.get("name") == name)
        (job,) = workflow()["jobs"].values()
        inputs = {key: given["default"] for key, given in action()["inputs"].items()} | job["steps"][-1]["with"]
        known = {f"inputs.{key}": value for key, value in inputs.items()}
        known |= {
            "github.event.pull_request.base.sha": self.base,
            "github.event.pull_request.number": "7",
            "github.repository": "shop/deploy",
            **values,
        }
        environment = {key: str(known[value.strip("${} ")]) for key, value in step["env"].items()}
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.repository,
            env={**self.environment, **environment},
            text=True,
            capture_output=True,
            check=False,
        )

    def status(self) -> str:
        return (self.temporary / "output").read_text().strip().removeprefix("status=")

    def calls(self) -> list[str]:
        return (self.temporary / "calls").read_text().splitlines()


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_pull_request_that_allows_more_gets_a_comment_and_fails(runner: Runner) -> None:
    runner.edit("serviceAccounts: [web]", "serviceAccounts: [web, cart]")
    compared = runner.step("Compare")
    assert (compared.returncode, compared.stderr) == (0, "")
    assert compared.stdout.startswith("::warning file=manifests/policies.yaml,line=11,")
    assert runner.status() == "1"
    assert runner.step("Comment").returncode == 0
    body = (runner.temporary / "body").read_text("utf-8")
    assert body.startswith(MARK)
    assert "| **allowed** | sa:shop/cart to pod:shop/cart port 8080 |" in body
    assert (runner.temporary / "summary").read_text("utf-8") == body
    assert runner.calls()[-1].startswith("api --silent --method POST repos/shop/deploy/issues/7/comments")
    assert runner.step("Verdict", **{"steps.compare.outputs.status": runner.status()}).returncode == 1


def test_the_next_push_writes_the_comment_anew(runner: Runner) -> None:
    (runner.temporary / "before").write_text("42\n43\n")
    runner.edit("# Ana,", "# Anna,")
    assert runner.step("Compare").returncode == 0
    assert runner.step("Comment").returncode == 0
    assert runner.calls()[-1].startswith("api --silent --method PATCH repos/shop/deploy/issues/comments/42")
    assert "no request changes its verdict" in (runner.temporary / "body").read_text("utf-8")
    assert runner.step("Verdict", **{"steps.compare.outputs.status": runner.status()}).returncode == 0


def test_manifests_that_cannot_be_read_fail_the_job(runner: Runner) -> None:
    runner.edit("action: ALLOW", "action: PERMIT")
    compared = runner.step("Compare", **{"inputs.settings": "denyOnly=maybe"})
    assert compared.returncode == 2
    assert "denyOnly" in compared.stderr


def test_later_commits_of_the_base_are_not_changes_of_the_pull_request(runner: Runner) -> None:
    runner.git("switch", "--quiet", "--create", "topic")
    runner.edit("# Ana,", "# Anna,")
    runner.git("switch", "--quiet", "main")
    runner.edit("serviceAccounts: [web]", "serviceAccounts: [web, cart]")
    runner.base = runner.git("rev-parse", "HEAD")
    runner.git("switch", "--quiet", "topic")
    assert runner.step("Compare").returncode == 0
    assert runner.status() == "0"


def test_sarif_is_written_on_request(runner: Runner) -> None:
    runner.edit("serviceAccounts: [web]", "serviceAccounts: [web, cart]")
    assert runner.step("Compare", **{"inputs.sarif": "diff.sarif"}).returncode == 0
    (run,) = json.loads((runner.repository / "diff.sarif").read_text("utf-8"))["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["EG6201"]
