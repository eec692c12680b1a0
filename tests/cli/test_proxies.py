"""Commands report Istio's policies that are not in force, or may not be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

POLICY = """apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: payments, namespace: shop}
spec: {selector: {matchLabels: {app: payments}}, rules: [{from: [{source: {serviceAccounts: [orders]}}]}]}
"""
POD = """---
apiVersion: v1
kind: Pod
metadata: {name: payments, namespace: shop, labels: {app: payments}}
spec: {containers: [{name: c, ports: [{containerPort: 9090}]}]}
"""
NAMESPACE = """---
apiVersion: v1
kind: Namespace
metadata: {name: NAME, labels: LABELS}
"""
TABLE = """
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {name: t}
spec:
  manifests: [app.yaml]
  cases: [{name: c, from: sa:shop/cart, to: pod:shop/payments, port: 9090, expect: allow}]
"""
COMMANDS = {
    "check": ["check", "-f", "app.yaml", "--from", "sa:shop/cart", "--to", "pod:shop/payments", "--port", "9090"],
    "graph": ["graph", "-f", "app.yaml"],
    "describe": ["describe", "pod", "payments", "-n", "shop", "-f", "app.yaml"],
    "get": ["get", "policies", "-A", "-f", "app.yaml"],
    "diff": ["diff", "app.yaml", "app.yaml"],
    "test": ["test", "t.yaml"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.yaml").write_text(TABLE)
    return tmp_path


def declared(name: str, labels: str = "{}") -> str:
    return NAMESPACE.replace("NAME", name).replace("LABELS", labels)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_warn_once_of_policies_on_pods_without_a_proxy(cli: Cli, folder: Path, command: list[str]) -> None:
    more = POD.replace("name: payments, namespace", "name: more, namespace") + declared("shop")
    text = POLICY + POD + more + declared("other", "{istio-injection: enabled}")
    (folder / "app.yaml").write_text(text)
    result = cli(*command)
    assert result.stderr.count("warning[EG6135]: nothing enforces AuthorizationPolicy/shop/payments on ") == 1
    assert result.exit_code == 0
    (folder / "app.yaml").write_text(text.replace("{}", "{istio-injection: enabled}"))
    assert "EG6135" not in cli(*command).stderr


@pytest.mark.parametrize("command", ["check", "explain"])
def test_an_answer_names_the_policies_that_may_not_be_in_force(cli: Cli, folder: Path, command: str) -> None:
    (folder / "app.yaml").write_text(POLICY + POD + declared("shop"))
    question = COMMANDS["check"][1:]
    denied = cli(command, *question)
    assert denied.exit_code == 1
    assert "without a proxy, nothing enforces AuthorizationPolicy/shop/payments" in denied.stdout
    assert "--set istioDataPlane=sidecar|ambient|none" in denied.stdout
    (enforcement,) = json.loads(cli(command, *question, "-o", "json").stdout)["enforcement"]
    assert (enforcement["enforced"], enforcement["setting"]) == (None, "istioDataPlane")
    for choice, status in (("sidecar", 1), ("ambient", 1), ("none", 0)):
        stated = cli(command, *question, "--set", f"istioDataPlane={choice}")
        assert stated.exit_code == status
        assert "no manifest says" not in stated.stdout


def test_a_graph_draws_only_what_both_allow(cli: Cli, folder: Path) -> None:
    (folder / "app.yaml").write_text(POLICY + POD + declared("shop"))
    edges = json.loads(cli("graph", "-f", "app.yaml", "-o", "json").stdout)["edges"]
    assert {(edge["from"], edge["verdict"]) for edge in edges if edge["to"] == "pod:shop/payments"} <= {
        ("sa:shop/orders", "allow"),
        ("outside", "depends"),
    }
    for choice, is_said in (("auto", True), ("sidecar", False), ("none", False)):
        shown = cli("graph", "-f", "app.yaml", "--set", f"istioDataPlane={choice}")
        assert ("note: no manifest says whether shop/payments has a proxy: " in shown.stdout) == is_said


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (POD.replace("{containers", "{hostNetwork: true, containers"), "hostNetwork pods have no proxy"),
        (
            POD.replace("{app: payments}", '{app: payments, sidecar.istio.io/inject: "false"}'),
            'its label sidecar.istio.io/inject: "false" refuses a proxy',
        ),
    ],
    ids=["hostNetwork", "label"],
)
def test_an_answer_and_a_warning_name_what_refuses_a_proxy(cli: Cli, folder: Path, pod: str, reason: str) -> None:
    (folder / "app.yaml").write_text(POLICY + pod + declared("shop", "{istio-injection: enabled}"))
    result = cli(*COMMANDS["check"])
    assert f"ALLOW  nothing enforces AuthorizationPolicy/shop/payments at pod shop/payments: {reason}" in result.stdout
    assert f"AuthorizationPolicy/shop/payments on shop/payments: {reason}" in result.stderr
