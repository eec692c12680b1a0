"""An unreadable policy does not count in findings: no finding compares another policy with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.cli.conftest import Cli

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: a, image: a, ports: [{containerPort: 80}]}]}
---
"""
SERVICES = "".join(
    f"apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n"
    f"spec: {{selector: {{app: {app}}}, ports: [{{port: 80}}]}}\n---\n"
    for name in ("one", "two")
    for app in ("web", "api")
)
POLICY = """\
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: NAME}
spec: {selector: {matchLabels: {app: web}}, action: DENY, rules: RULES}
---
"""


Codes: TypeAlias = Callable[[str], list[str]]


@pytest.fixture
def codes(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Codes:
    def find(text: str) -> list[str]:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "all.yaml").write_text(text)
        return sorted(set(re.findall(r"EG\d{4}", cli("lint", "-f", "all.yaml").stdout)))

    return find


def test_two_services_that_are_written_twice_are_no_rules_that_are(codes: Codes) -> None:
    assert codes(POD + SERVICES) == ["EG1036"]


def test_a_rule_behind_a_policy_with_errors_can_match(codes: Codes) -> None:
    good = POLICY.replace("NAME", "good").replace("RULES", "[{to: [{operation: {ports: ['80']}}]}]")
    bad = POLICY.replace("NAME", "bad").replace("RULES", "[{to: 1}]")
    found = codes(POD + bad + good)
    assert "EG6022" not in found
    assert any(code.startswith("EG1") for code in found)
