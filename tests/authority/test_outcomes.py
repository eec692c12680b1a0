"""Examples of both outcomes of partial questions."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from eastgate import load
from eastgate.authority.outcomes import examples
from eastgate.authority.questions import Question
from eastgate.cli import main
from tests.authority.test_spelling import AGENTS

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOP = str(EXAMPLES / "shop" / "manifests")
LINKERD = str(EXAMPLES / "linkerd" / "manifests")

HEADERS = """\
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XBackend
metadata: {name: tools, namespace: shop}
spec: {mcp: {serviceName: tools, port: 8080}}
---
apiVersion: agentic.networking.x-k8s.io/v1alpha1
kind: XAccessPolicy
metadata: {name: refunds, namespace: shop}
spec:
  targetRefs: [{group: agentic.prototype.x-k8s.io, kind: XBackend, name: tools}]
  action: Deny
  rules:
  - name: r
    source: {type: ServiceAccount, serviceAccount: {name: agent}}
    authorization: {type: Inline, methods: [GET, DELETE]}
"""


def check(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", *words], env={"NO_COLOR": "1"}, catch_exceptions=False)
    return result.exit_code, result.stdout


@pytest.mark.parametrize(
    ("manifests", "words", "answer"),
    [
        (
            SHOP,
            "--from sa:shop/cart --to pod:shop/payments --port 8443",
            "allowed for POST /v1/charges, GET /v1/charges/*; denied otherwise (add --method, --path)",
        ),
        (
            SHOP,
            "--from sa:shop/cart --to pod:shop/payments --method GET",
            "allowed for /v1/charges/* and port 8443; denied otherwise (add --port, --path)",
        ),
        (SHOP, "--from sa:shop/web --to pod:shop/cart", "allowed for port 8080; denied otherwise (add --port)"),
        (
            SHOP,
            "--from sa:monitoring/prometheus --to pod:shop/payments",
            "allowed for port 9090; denied otherwise (add --port)",
        ),
    ],
)
def test_the_conditions_are_listed_and_the_example_has_the_answer(manifests: str, words: str, answer: str) -> None:
    asked = ("-f", manifests, *shlex.split(words))
    status, output = check(*asked)
    assert status == 1
    head, allowed = output.splitlines()
    assert head == f"DEPENDS  {answer}"
    assert allowed.startswith("  allowed, for example, with ")
    again, first = check(*asked, *shlex.split(allowed.removeprefix("  allowed, for example, with ")))
    assert again == 0
    assert first.startswith("ALLOW")


def test_a_condition_on_ports_methods_and_addresses_has_an_example() -> None:
    status, output = check("-f", LINKERD, *shlex.split("--from sa:emojivoto/web --to pod:emojivoto/emoji"))
    assert status == 1
    assert output.startswith("DEPENDS  ")
    assert "\N{MIDDLE DOT}" not in output


@pytest.mark.parametrize(
    "words",
    [
        "--from sa:shop/web --to pod:shop/payments",  # no attribute that is left out could help
        "--from sa:shop/web --to pod:shop/cart --port 8080",
        "--from anonymous --to pod:shop/cart --port 8080",
    ],
)
def test_where_nothing_is_open_there_are_no_examples(words: str) -> None:
    _, output = check("-f", SHOP, *shlex.split(words))
    assert "for example" not in output
    assert "unknown" not in output


def test_tools_and_headers_are_examples_too(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("---".join(AGENTS.split("---")[:2]))  # without the policy that asks elsewhere
    authority = load(tmp_path)
    found = examples(authority.decide(Question.of("sa:shop/agent", "backend:shop/tools")), authority)
    assert found is not None
    assert set(found.allow) >= {"--header", "x-tenant=a", "--tool", "refund"}
    assert found.deny is not None


def test_what_a_deny_rule_asks_for_is_avoided(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(HEADERS)
    authority = load(tmp_path)
    decision = authority.decide(Question.of("sa:shop/agent", "backend:shop/tools"))
    assert decision.reason.endswith("; unknown: method")
    found = examples(decision, authority)
    assert found is not None
    assert found.allow[0] == "--method"
    assert found.allow[1] not in ("GET", "DELETE")


def test_an_explanation_shows_values_that_can_be_asked() -> None:
    words = ("--from", "sa:shop/cart", "--to", "pod:shop/payments", "--port", "8443")
    output = CliRunner().invoke(main, ["explain", "-f", SHOP, *words], env={"NO_COLOR": "1"}).stdout
    assert "unknown method: for example any other" in output
    assert "  allowed, for example, with --method POST --path /v1/charges\n" in output
    assert "\N{MIDDLE DOT}" not in output
