"""Repeated headers and query parameters, in arguments of a command and in a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

_MANIFESTS = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: app, labels: {app: web}}
---
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: http, namespace: app}
spec: {port: 8080, podSelector: {}, proxyProtocol: HTTP/1}
---
apiVersion: policy.linkerd.io/v1beta3
kind: HTTPRoute
metadata: {name: role, namespace: app}
spec:
  parentRefs: [{group: policy.linkerd.io, kind: Server, name: http}]
  rules: [{matches: [{headers: [{name: x-role, value: admin}]}, {queryParams: [{name: debug, value: "1"}]}]}]
---
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {name: role, namespace: app}
spec:
  targetRef: {group: policy.linkerd.io, kind: HTTPRoute, name: role}
  requiredAuthenticationRefs: [{kind: ServiceAccount, name: a}]
"""
_QUESTION = ("--from", "sa:app/a", "--to", "pod:app/web", "--port", "8080", "--method", "GET")
_TABLE = """\
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {name: t}
spec:
  manifests: [policies.yaml]
  cases:
  - {from: "sa:app/a", to: "pod:app/web", port: 8080, http: {path: /, headers: {x-role: VALUES}}, expect: EXPECTED}
"""


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--path", "/", "--header", "x-role=user", "--header", "x-role=admin"), 0),
        (("--path", "/", "--header", "x-role=admin", "--header", "X-Role=user"), 0),
        (("--path", "/", "--header", "x-role=user", "--header", "x-role=guest"), 1),
        (("--path", "/?debug=0&debug=1", "--header", "x=y"), 0),
        (("--path", "/?debug=0&debug=2", "--header", "x=y"), 1),
    ],
)
def test_any_value_of_several_matches(cli: Cli, tmp_path: Path, words: tuple[str, ...], status: int) -> None:
    (tmp_path / "policies.yaml").write_text(_MANIFESTS)
    assert cli("check", "-f", "policies.yaml", *_QUESTION, *words).exit_code == status


@pytest.mark.parametrize(
    ("values", "expected"), [("[user, admin]", "allow"), ("[user, guest]", "deny"), ("[]", "deny"), ("admin", "allow")]
)
def test_a_table_lists_them(cli: Cli, tmp_path: Path, values: str, expected: str) -> None:
    (tmp_path / "policies.yaml").write_text(_MANIFESTS)
    (tmp_path / "table.yaml").write_text(_TABLE.replace("VALUES", values).replace("EXPECTED", expected))
    result = cli("test", "table.yaml")
    assert result.exit_code == 0, result.stdout


@pytest.mark.parametrize("values", ["[user, 1]", "{a: b}", "7"])
def test_what_is_no_value_is_an_error(cli: Cli, tmp_path: Path, values: str) -> None:
    (tmp_path / "policies.yaml").write_text(_MANIFESTS)
    (tmp_path / "table.yaml").write_text(_TABLE.replace("VALUES", values).replace("EXPECTED", "allow"))
    assert cli("test", "table.yaml").exit_code == 2


def test_explain_shows_the_values_for_which_it_is_denied(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text(_MANIFESTS)
    result = cli("check", "-f", "policies.yaml", *_QUESTION, "--path", "/", "-o", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["verdict"] == "deny"
