"""A baseline accepts the existing findings. Only new ones count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eastgate.cli import main

POD = """apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {containers: [{name: main, image: web}]}
"""
POLICY = """---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: {0}, namespace: shop}}
spec: {{podSelector: {{matchLabels: {{app: {0}}}}}}}
"""


class Project:
    """A folder with manifests, and a baseline beside it."""

    def __init__(self, folder: Path) -> None:
        self.manifests = folder / "manifests"
        self.manifests.mkdir()
        self.file = folder / "baseline.json"

    def write(self, *policies: str, before: str = "") -> None:
        text = before + POD + "".join(map(POLICY.format, policies))
        (self.manifests / "app.yaml").write_text(text, encoding="utf-8")

    def lint(self, *options: str) -> Result:
        return CliRunner().invoke(main, ["lint", "-f", str(self.manifests), *options])

    def compared(self, *options: str) -> Result:
        return self.lint("--baseline", str(self.file), *options)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("old")
    assert project.lint().exit_code == 1
    written = project.lint("--write-baseline", str(project.file))
    assert (written.exit_code, written.output) == (
        0,
        f"wrote 1 finding to {project.file}; give it with --baseline {project.file}\n",
    )
    return project


def test_findings_of_a_baseline_are_not_shown_and_do_not_count(project: Project) -> None:
    result = project.compared()
    assert (result.exit_code, result.output) == (0, "no findings; 1 in the baseline\n")


def test_a_new_finding_counts(project: Project) -> None:
    project.write("old", "new")
    result = project.compared()
    assert result.exit_code == 1
    assert "NetworkPolicy/shop/new selects nothing" in result.output
    assert "NetworkPolicy/shop/old" not in result.output


def test_lines_and_other_workloads_may_change(project: Project) -> None:
    project.write("old", before=f"# a comment\n\n{POD.replace('web', 'cart')}---\n")
    assert project.compared().exit_code == 0


def test_the_same_mistake_a_second_time_is_new(project: Project) -> None:
    project.write("old")
    text = (project.manifests / "app.yaml").read_text("utf-8")
    (project.manifests / "app.yaml").write_text(text.replace("app: old", "app: older"), encoding="utf-8")
    assert project.compared().exit_code == 1


def test_another_mistake_under_the_same_key_is_new(project: Project) -> None:
    """Most manifests have one field in each line, and only the first line of a selector is underlined."""
    block = "podSelector:\n    matchLabels:\n      app: {0}\n"
    text = (project.manifests / "app.yaml").read_text("utf-8")
    flow = "{podSelector: {matchLabels: {app: old}}}"
    (project.manifests / "app.yaml").write_text(text.replace(f" {flow}", "\n  " + block.format("old")), "utf-8")
    assert project.lint("--write-baseline", str(project.file)).exit_code == 0
    assert project.compared().exit_code == 0
    (project.manifests / "app.yaml").write_text(text.replace(f" {flow}", "\n  " + block.format("other")), "utf-8")
    assert project.compared().exit_code == 1


def test_fixed_findings_are_counted(project: Project) -> None:
    project.write()
    result = project.compared()
    assert result.exit_code == 0
    assert "1 of it gone: shorten it with --write-baseline" in result.output


def test_json_counts_the_findings_of_the_baseline(project: Project) -> None:
    project.write("old", "new")
    told = json.loads(project.compared("-o", "json").output)
    assert [finding["subjects"] for finding in told["findings"]] == [["NetworkPolicy/shop/new"]]
    assert told["baseline"] == {"known": 1, "gone": 0}


def test_sarif_has_all_findings_with_their_state(project: Project) -> None:
    project.write("old", "new")
    results = json.loads(project.compared("-o", "sarif").output)["runs"][0]["results"]
    assert [result["baselineState"] for result in results] == ["unchanged", "new"]


def test_without_a_baseline_sarif_has_no_states(project: Project) -> None:
    results = json.loads(project.lint("-o", "sarif").output)["runs"][0]["results"]
    assert "baselineState" not in results[0]


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"version": 1, "findings": [{"code": "EG6001"}]}'])
def test_a_file_that_is_no_baseline_accepts_nothing(project: Project, content: str | None) -> None:
    project.file.unlink()
    if content is not None:
        project.file.write_text(content, encoding="utf-8")
    result = project.compared()
    assert result.exit_code == 2
    assert f"--write-baseline {project.file}" in result.output.replace("\n", " ")
