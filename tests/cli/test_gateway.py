"""Questions about a Gateway: every backend that it may lead to is decided and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

PROTOTYPE = "agentic.prototype.x-k8s.io"
MANIFESTS = f"""\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: g, namespace: 'n'}}
spec: {{gatewayClassName: c, listeners: [{{name: l, port: 80, protocol: HTTP}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: r, namespace: 'n'}}
spec:
  parentRefs: [{{name: g}}]
  rules:
  - backendRefs:
    - {{group: {PROTOTYPE}, kind: XBackend, name: stable, weight: 9}}
    - {{group: {PROTOTYPE}, kind: XBackend, name: canary, weight: 1}}
---
apiVersion: {PROTOTYPE}/v0alpha0
kind: XBackend
metadata: {{name: stable, namespace: 'n'}}
spec: {{mcp: {{serviceName: s, port: 80}}}}
---
apiVersion: {PROTOTYPE}/v0alpha0
kind: XBackend
metadata: {{name: canary, namespace: 'n'}}
spec: {{mcp: {{serviceName: s, port: 80}}}}
---
apiVersion: {PROTOTYPE}/v0alpha0
kind: XAccessPolicy
metadata: {{name: ask, namespace: 'n'}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: g}}]
  rules:
  - name: auditor
    source: {{type: ServiceAccount, serviceAccount: {{name: auditor}}}}
    authorization:
      type: ExternalAuth
      externalAuth: {{protocol: GRPC, grpc: {{}}, backendRef: {{name: authz, port: 9000}}}}
---
apiVersion: {PROTOTYPE}/v0alpha0
kind: XAccessPolicy
metadata: {{name: canary-only-reads, namespace: 'n'}}
spec:
  targetRefs: [{{group: {PROTOTYPE}, kind: XBackend, name: canary}}]
  rules:
  - name: agent
    source: {{type: ServiceAccount, serviceAccount: {{name: agent}}}}
    authorization: {{type: InlineTools, tools: [read]}}
"""
STABLE, CANARY = "gateway n/g -> XBackend n/stable", "gateway n/g -> XBackend n/canary"


@pytest.fixture(autouse=True)
def manifests(cli: Cli) -> None:
    Path("m.yaml").write_text(MANIFESTS)


def ask(cli: Cli, verb: str, who: str, tool: str, *more: str) -> tuple[int, str]:
    result = cli(verb, "-f", "m.yaml", "--from", f"sa:n/{who}", "--to", "gateway:n/g", "--tool", tool, *more)
    return result.exit_code, result.stdout


def test_allowed_only_if_every_backend_of_a_weighted_route_allows(cli: Cli) -> None:
    assert ask(cli, "check", "agent", "read")[0] == 0
    status, answer = ask(cli, "check", "agent", "write", "-o", "json")
    assert status == 1
    assert json.loads(answer)["ways"] == [{"at": STABLE, "verdict": "allow"}, {"at": CANARY, "verdict": "deny"}]


def test_explain_shows_every_backend_and_both_levels(cli: Cli) -> None:
    _, text = ask(cli, "explain", "agent", "write")
    assert f"it may arrive at\n  {STABLE}: allowed\n  {CANARY}: denied\n" in text
    assert "gateway/access: allowed" in text
    assert "backend/access: denied" in text


def test_an_authorizer_that_was_not_asked_is_shown_as_such(cli: Cli) -> None:
    assert "authz.n:9000: not asked" in ask(cli, "explain", "agent", "read")[1]
    assert "authz.n:9000: no answer" in ask(cli, "explain", "auditor", "read")[1]
    assert "authz.n:9000: error" in ask(cli, "explain", "auditor", "read", "--external-auth", "authz.n:9000=error")[1]


def test_a_request_that_the_gateway_denies_does_not_reach_the_backend(cli: Cli) -> None:
    Path("m.yaml").write_text(MANIFESTS.replace("weight: 9", "weight: 0"))
    assert "backend/access: not reached" in ask(cli, "explain", "auditor", "read")[1]


@pytest.mark.parametrize("answer", ["deny", "error"])
def test_an_authorizer_that_does_not_allow_denies(cli: Cli, answer: str) -> None:
    assert ask(cli, "check", "auditor", "read", "--external-auth", f"authz.n:9000={answer}")[0] == 1


def test_an_answer_that_no_authorizer_gives_is_an_error(cli: Cli) -> None:
    result = cli(
        "check",
        "-f",
        "m.yaml",
        "--from",
        "sa:n/x",
        "--to",
        "gateway:n/g",
        "--tool",
        "t",
        "--external-auth",
        "a.n:1=maybe",
    )
    assert result.exit_code == 2
    assert "write allow, deny or error" in result.stderr
