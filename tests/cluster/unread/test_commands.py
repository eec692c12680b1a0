"""One rule for all commands: the output, the JSON and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import eastgate
from eastgate.cli import main
from eastgate.cluster.unread import Handling
from tests.cluster.unread.conftest import WEB_TO_CART, WORLD, Run

SELECTING = """\
---
apiVersion: k8s.cni.cncf.io/v1beta1
kind: MultiNetworkPolicy
metadata: {name: cart, namespace: shop}
spec: {podSelector: {matchLabels: {app: cart}}}
---
apiVersion: k8s.cni.cncf.io/v1beta1
kind: MultiNetworkPolicy
metadata: {name: other, namespace: shop}
spec: {podSelector: {matchLabels: {app: other}}}
"""
CLOSED = """\
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: nobody, namespace: shop}
spec: {targetRefs: [{kind: Pod, selector: {}}], action: ALLOW}
"""
KNATIVE = """\
---
apiVersion: eventing.knative.dev/v1alpha1
kind: EventPolicy
metadata: {name: one, namespace: shop}
"""
WASM = """\
---
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: {name: one, namespace: shop}
spec: {selector: {matchLabels: {app: cart}}}
"""
KYVERNO = """\
---
apiVersion: envoy.kyverno.io/v1alpha1
kind: AuthorizationPolicy
metadata: {name: one}
"""


def test_check_says_what_it_leaves_out_and_where_that_is(run: Run) -> None:
    result = run(SELECTING, "check", *WEB_TO_CART)
    assert result.exit_code == 3
    assert result.stdout == (
        "ALLOW (identity policies only)  no policy targets shop/cart\n"
        "not considered: 2 MultiNetworkPolicies, of which 1 selects this pod: more.yaml:2\n"
    )


def test_explain_says_it_too(run: Run) -> None:
    result = run(SELECTING, "explain", *WEB_TO_CART)
    assert result.exit_code == 3
    assert result.stdout.startswith("ALLOW (identity policies only)  sa:shop/web -> pod:shop/cart port 80\n")
    assert result.stdout.endswith("not considered: 2 MultiNetworkPolicies, of which 1 selects this pod: more.yaml:2\n")


def test_a_deny_stays_one_where_what_is_left_out_can_only_deny_more(run: Run) -> None:
    result = run(SELECTING + CLOSED, "check", *WEB_TO_CART)
    assert result.exit_code == 1
    assert result.stdout.startswith("DENY  ")
    assert "not considered: 2 MultiNetworkPolicies" in result.stdout


def test_a_deny_that_may_become_an_allow_is_qualified(run: Run) -> None:
    result = run(WASM + CLOSED, "check", *WEB_TO_CART)
    assert result.exit_code == 3
    assert result.stdout.startswith("DENY (by what was read)  ")


@pytest.mark.parametrize(
    ("unread", "manifest", "status"),
    [
        (None, SELECTING, 3),
        ("error", SELECTING, 2),
        ("warn", SELECTING, 3),
        ("ignore", SELECTING, 0),
        (None, KYVERNO, 2),
        ("error", KYVERNO, 2),
        ("warn", KYVERNO, 3),
        ("ignore", KYVERNO, 0),
        ("error", SELECTING + CLOSED, 1),
        (None, KYVERNO + CLOSED, 1),
    ],
)
def test_unread_sets_the_treatment_of_the_answer(unread: str | None, manifest: str, status: int, run: Run) -> None:
    words = ("--unread", unread) if unread else ()
    result = run(manifest, "check", *WEB_TO_CART, *words)
    assert result.exit_code == status
    if unread == "ignore":
        assert result.output == "ALLOW  no policy targets shop/cart\n"
    data = json.loads(run(manifest, "check", *WEB_TO_CART, *words, "-o", "json").stdout)
    if status != 2:
        assert data["unconsidered"]  # silent or not
        assert data["complete"] is (status == 1)
    else:
        assert (data["verdict"], data["diagnostics"][-1]["code"]) == (None, "EG0121")


def test_describe_says_it_and_ends_with_3(run: Run) -> None:
    result = run(SELECTING, "describe", "pod", "cart")
    assert result.exit_code == 3
    assert "Not considered:\n  2 MultiNetworkPolicies, of which 1 selects this pod: more.yaml:2\n" in result.stdout
    data = json.loads(run(SELECTING, "describe", "pod", "cart", "-o", "json").stdout)
    assert [one["name"] for one in data["unconsidered"]] == ["cart"]
    assert run(SELECTING, "describe", "pod", "bank").exit_code == 0
    assert run(SELECTING, "describe", "service", "cart").exit_code == 3
    assert run(KYVERNO, "describe", "pod", "cart").exit_code == 2
    result = run(SELECTING, "describe", "pod", "cart", "--unread", "ignore")
    assert (result.exit_code, "NetworkPolic" in result.stdout) == (0, False)


def test_get_lists_whatever_else_is_there(run: Run) -> None:
    result = run(KNATIVE + KYVERNO, "get", "workloads")
    assert result.exit_code == 0
    assert "cart" in result.stdout
    assert "not considered: 1 EventPolicy: more.yaml:2\n" in result.stderr
    assert run(KNATIVE, "get", "workloads", "--unread", "ignore").stderr == ""


def test_lint_is_a_gate_for_policies_like_those_that_are_read(run: Run) -> None:
    result = run(KNATIVE, "lint")
    assert result.exit_code == 3
    assert "error[EG1310]: eventing.knative.dev EventPolicy is not read" in result.stdout
    assert run(KNATIVE, "lint", "--ignore", "EG1310", "--fail-on", "never").exit_code == 3
    assert run(KNATIVE, "lint", "--unread", "warn").exit_code == 0
    assert run(SELECTING, "lint").exit_code == 0
    assert "info[EG1311]: k8s.cni.cncf.io MultiNetworkPolicy is not read" in run(SELECTING, "lint").stdout
    assert run(SELECTING, "lint", "--unread", "error").exit_code == 3
    assert "EG131" not in run(SELECTING, "lint", "--unread", "ignore").stdout


def test_convert_says_what_it_did_not_read(run: Run) -> None:
    result = run(CLOSED + KNATIVE, "convert", "--to", "xauthorizationpolicy")
    assert "not considered: 1 EventPolicy: more.yaml:7" in result.stderr
    assert result.exit_code in (1, 3)
    assert run(CLOSED + KNATIVE, "convert", "--to", "xauthorizationpolicy", "--unread", "error").exit_code == 2
    assert run(CLOSED, "convert", "--to", "authorizationpolicy-v1alpha2").exit_code == 0
    assert run(CLOSED + KNATIVE, "convert", "--to", "authorizationpolicy-v1alpha2").exit_code == 3


TABLE = """\
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {{name: shop}}
spec:
  manifests: [world.yaml, more.yaml]
  {unread}
  cases:
  - {{name: cart, from: sa:shop/web, to: pod:shop/cart, port: 80, expect: {expect}}}
  - {{name: bank, from: sa:shop/web, to: pod:pay/bank, port: 80, expect: allow}}
"""


def outcome_of(folder: Path, more: str, *words: str, unread: str = "", expect: str = "allow") -> tuple[int, str]:
    (folder / "world.yaml").write_text(WORLD)
    (folder / "more.yaml").write_text(more)
    (folder / "table.yaml").write_text(TABLE.format(unread=unread, expect=expect))
    result = CliRunner().invoke(main, ["test", str(folder / "table.yaml"), *words], catch_exceptions=False)
    return result.exit_code, result.stdout


def test_a_table_that_expects_allow_of_half_the_truth_fails(tmp_path: Path) -> None:
    status, output = outcome_of(tmp_path, SELECTING)
    assert status == 1
    assert "1 passed, 1 failed" in output
    assert (
        "allow considers only what was read: not considered: 2 MultiNetworkPolicies, of which 1 selects this pod"
        in output
    )
    assert outcome_of(tmp_path, SELECTING, unread="unread: ignore")[0] == 0
    assert outcome_of(tmp_path, SELECTING, "--unread", "ignore")[0] == 0
    status, output = outcome_of(tmp_path, SELECTING, unread="unread: warn")
    assert status == 0
    assert "not considered: 2 MultiNetworkPolicies" in output
    assert outcome_of(tmp_path, SELECTING, "--unread", "ignore", unread="unread: error")[0] == 1


def test_a_table_that_expects_deny_passes_where_the_rest_can_only_deny_more(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, SELECTING + CLOSED, expect="deny")[0] == 0
    assert outcome_of(tmp_path, WASM + CLOSED, expect="deny")[0] == 1


def test_the_python_api_answers_only_what_is_the_whole_truth(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(WORLD + SELECTING)
    question = eastgate.Question.of("sa:shop/web", "pod:shop/cart", port=80)
    with pytest.raises(eastgate.QuestionError, match="unread objects could change the answer"):
        eastgate.load(tmp_path).decide(question)
    authority = eastgate.load(tmp_path, unread=Handling.WARN)
    decision = authority.decide(question)
    assert (decision.allowed, decision.complete) == (True, False)
    assert decision.stated() == "ALLOW (identity policies only)"
    assert "not considered: 2 MultiNetworkPolicies" in authority.explain(decision)
    assert eastgate.load(tmp_path).decide(eastgate.Question.of("sa:shop/web", "pod:pay/bank")).complete


BROKEN = CLOSED.replace("ALLOW", "ALOW").replace("selector: {}", "selector: {matchLabels: {app: cart}}")
REJECTS = "rejects: [{policy: AuthorizationPolicy/shop/nobody}]"


def test_a_table_decides_what_a_policy_with_errors_is_not_about(tmp_path: Path) -> None:
    status, output = outcome_of(tmp_path, BROKEN)
    assert status == 1
    assert "FAIL" in output
    assert "could not be decided: AuthorizationPolicy/shop/nobody cannot be read" in output
    assert "1 passed, 2 failed" in output  # readable manifests are one of them
    assert "0 passed, 3 failed" in outcome_of(tmp_path, BROKEN, "--strict")[1]
    status, output = outcome_of(tmp_path, BROKEN, unread=REJECTS)
    assert (status, "2 passed, 1 failed" in output) == (1, True)
