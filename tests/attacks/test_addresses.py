"""Spellings of an address that try to evade a block, in questions and in policies."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from eastgate.cli import main

SPELLINGS = ("10.0.0.1", "::ffff:10.0.0.1", "::FFFF:10.0.0.1", "::ffff:a00:1", "0:0:0:0:0:ffff:0a00:0001")
BLOCKS = ("10.0.0.0/8", "::ffff:10.0.0.0/104", "::ffff:a00:0/104")
POLICY = """\
apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: shop, labels: {{app: web}}}}
spec: {{containers: [{{name: c, ports: [{{containerPort: 8080}}]}}]}}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: web, namespace: shop}}
spec: {{action: {action}, rules: [{{from: [{{source: {{{field}: ["{block}"]}}}}]}}]}}
"""


def _check(tmp_path: Path, policy: str, *words: str) -> int:
    path = tmp_path / "policy.yaml"
    path.write_text(policy)
    question = ["check", "-f", str(path), "--set", "istioDataPlane=sidecar", "--to", "pod:shop/web", "--port", "8080"]
    result = CliRunner().invoke(main, [*question, "--method", "GET", "--path", "/", *words], catch_exceptions=False)
    return result.exit_code


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_an_address_evades_a_deny(tmp_path: Path, spelling: str, block: str) -> None:
    direct = POLICY.format(action="DENY", field="ipBlocks", block=block)
    assert _check(tmp_path, direct, "--from", "sa:shop/a", "--source-ip", spelling) == 1
    assert _check(tmp_path, direct, "--from", f"ip:{spelling}") == 1
    assert _check(tmp_path, direct, "--from", f"ip:{spelling.replace('10.', '11.').replace('a00', 'b00')}") == 0
    forwarded = POLICY.format(action="DENY", field="remoteIpBlocks", block=block)
    assert _check(tmp_path, forwarded, "--from", "sa:shop/a", "--forwarded-for", spelling) == 1


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_block_of_ipv6_admits_no_ipv4(tmp_path: Path, spelling: str) -> None:
    policy = POLICY.format(action="ALLOW", field="ipBlocks", block="::/0")
    assert _check(tmp_path, policy, "--from", f"ip:{spelling}") == 1
    assert _check(tmp_path, policy, "--from", "ip:2001:db8::1") == 0
