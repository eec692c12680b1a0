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


PATHS = MANIFESTS.replace(
    f"""\
  - backendRefs:
    - {{group: {PROTOTYPE}, kind: XBackend, name: stable, weight: 9}}
    - {{group: {PROTOTYPE}, kind: XBackend, name: canary, weight: 1}}
""",
    f"""\
  - matches: [{{path: {{type: Exact, value: /stable}}}}]
    backendRefs: [{{group: {PROTOTYPE}, kind: XBackend, name: stable}}]
  - matches: [{{path: {{type: PathPrefix, value: /canary}}}}]
    backendRefs: [{{group: {PROTOTYPE}, kind: XBackend, name: canary}}]
""",
)


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


def test_a_tool_that_one_path_allows_and_another_denies_depends_and_exits_as_denied(cli: Cli) -> None:
    Path("m.yaml").write_text(PATHS)
    assert ask(cli, "check", "agent", "read")[0] == 0
    status, text = ask(cli, "check", "agent", "write")
    assert status == 1
    assert text.startswith(f"DEPENDS  allowed at {STABLE}; denied at {CANARY}\n")
    assert "  allowed, for example, with --method POST --path /stable\n" in text
    assert "  denied, for example, with  --method POST --path /canary\n" in text
    assert ask(cli, "check", "agent", "write", "--method", "POST", "--path", "/stable")[0] == 0
    assert ask(cli, "check", "agent", "write", "--method", "POST", "--path", "/canary")[0] == 1


@pytest.mark.parametrize("verb", ["check", "explain"])
def test_what_depends_is_denied_in_json_and_says_where(cli: Cli, verb: str) -> None:
    Path("m.yaml").write_text(PATHS)
    status, answer = ask(cli, verb, "agent", "write", "-o", "json")
    assert status == 1
    found = json.loads(answer)
    assert found["verdict"] == "deny"
    assert found["depends"]["allow"] == [STABLE]
    assert found["depends"]["deny"] == [CANARY]
    assert cli("check", "-f", "m.yaml", *found["depends"]["example"]).exit_code == 0


def test_explain_begins_with_what_it_depends_on(cli: Cli) -> None:
    Path("m.yaml").write_text(PATHS)
    _, text = ask(cli, "explain", "agent", "write")
    assert text.startswith(f"DEPENDS  sa:n/agent -> gateway:n/g write\n  allowed at {STABLE}; denied at {CANARY}\n")


def test_a_caller_that_no_path_allows_is_denied(cli: Cli) -> None:
    Path("m.yaml").write_text(PATHS)
    more = ("--external-auth", "authz.n:9000=deny")
    status, text = ask(cli, "check", "auditor", "write", *more)
    assert (status, text[:6]) == (1, "DENY  ")
    assert json.loads(ask(cli, "check", "auditor", "write", *more, "-o", "json")[1])["depends"] is None


def test_a_path_below_the_one_that_a_backend_allows_is_said_to_be_denied(cli: Cli) -> None:
    policy = f"""\
---
apiVersion: agentic.networking.x-k8s.io/v1alpha1
kind: XAccessPolicy
metadata: {{name: one-path, namespace: 'n'}}
spec:
  targetRefs: [{{group: {PROTOTYPE}, kind: XBackend, name: canary}}]
  action: Deny
  rules: [{{name: below, authorization: {{type: Inline, paths: [{{type: PathPrefix, value: /canary/admin}}]}}}}]
"""
    Path("m.yaml").write_text(PATHS + policy)
    status, answer = ask(cli, "check", "agent", "read", "-o", "json")
    assert status == 1
    depends = json.loads(answer)["depends"]
    assert depends["allow"] == [f"{CANARY} with --method POST --path /canary", STABLE]
    assert depends["deny"] == [f"{CANARY} otherwise"]


def test_a_question_in_plain_text_that_leaves_something_out_has_examples(cli: Cli) -> None:
    Path("m.yaml").write_text(PATHS)
    status, text = ask(cli, "check", "agent", "read", "--plaintext")
    assert status == 1
    assert "allowed, for example, with --method POST --path /stable" in text
