"""Findings with one cause are one to a reader. Machines get each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from eastgate.cli import main

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n"
POD = """---
apiVersion: v1
kind: Pod
metadata: {{name: web-{0}, namespace: app, labels: {{app: web-{0}}}}}
spec: {{containers: [{{name: main, image: web}}]}}
"""
WITHOUT_A_PROXY = """---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: p-{0}, namespace: app}}
spec: {{selector: {{matchLabels: {{app: web-{0}}}}}, rules: [{{}}]}}
"""
SELECTS_NOTHING = """---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: n-{0}, namespace: app}}
spec: {{podSelector: {{matchLabels: {{app: none-{0}}}}}}}
"""
MESHED = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: other, labels: {istio-injection: enabled}}\n"


def run(folder: Path, policy: str, count: int, *options: str) -> str:
    pods = "".join(POD.format(number) for number in range(count))
    policies = "".join(policy.format(number) for number in range(count))
    (folder / "app.yaml").write_text(NAMESPACE + MESHED + pods + policies, encoding="utf-8")
    return CliRunner().invoke(main, ["lint", "-f", str(folder), *options]).output


def test_findings_with_one_cause_are_one_with_a_count_and_the_first_places(tmp_path: Path) -> None:
    output = run(tmp_path, WITHOUT_A_PROXY, 40)
    assert output.count("warning[EG6135]") == 1
    assert f"= also: 39 more: AuthorizationPolicy/app/p-1 ({tmp_path}/app.yaml:" in output
    assert output.endswith("and 36 more\n\n1 warning, in 40 places\n")


@pytest.mark.parametrize(("count", "shown"), [(9, 9), (40, 10)])
def test_of_very_many_findings_of_one_code_the_rest_are_only_counted(tmp_path: Path, count: int, shown: int) -> None:
    output = run(tmp_path, SELECTS_NOTHING, count)
    assert output.count("warning[EG6001]") == shown
    assert ("= also: 30 more: " in output) is (count > shown)


UNKNOWN_NAMESPACE = """---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: p-{0}, namespace: app}}
spec:
  selector: {{matchLabels: {{app: web-{0}}}}}
  rules: [{{from: [{{source: {{namespaces: [elsewhere]}}}}]}}]
"""


def test_findings_of_the_same_words_are_one(tmp_path: Path) -> None:
    output = run(tmp_path, UNKNOWN_NAMESPACE, 3)
    assert output.count("info[EG6005]: no manifest declares namespace elsewhere") == 1
    assert "= also: 2 more: AuthorizationPolicy/app/p-1 (" in output


def test_each_is_shown_with_v(tmp_path: Path) -> None:
    assert run(tmp_path, WITHOUT_A_PROXY, 12, "-v").count("warning[EG6135]") == 12


def test_an_annotation_of_github_is_one_for_each_cause(tmp_path: Path) -> None:
    (line,) = run(tmp_path, WITHOUT_A_PROXY, 12, "-o", "github").splitlines()
    assert "%0Aalso: 11 more: AuthorizationPolicy/app/p-1 (" in line


def test_json_and_sarif_have_each_finding(tmp_path: Path) -> None:
    told = json.loads(run(tmp_path, WITHOUT_A_PROXY, 12, "-o", "json"))
    assert (len(told["findings"]), told["summary"]["warning"]) == (12, 12)
    assert len(json.loads(run(tmp_path, WITHOUT_A_PROXY, 12, "-o", "sarif"))["runs"][0]["results"]) == 12
