"""A Secret with invalid data stops nothing but the policies that read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.questions import Question, QuestionError, ends
from eastgate.authority.reading import Manifests, read_manifests

WORLD = """\
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: shop, labels: {app: api}}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: shop}
spec: {selector: {app: api}, ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: shop}
spec: {gatewayClassName: x, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: api, namespace: shop}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: api, port: 80}]}]}
"""
KEYS = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: NS, labels: {app: keys}}\n"
POLICY = """\
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: api, namespace: shop}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: api}
  rules: {authentication: {x: HOW}}
"""
SELECTED = "apiKey: {selector: {matchLabels: {app: keys}}}"
EXPRESSED = "apiKey: {allNamespaces: true, selector: {matchExpressions: [{key: app, operator: Exists}]}}"
NAMED = "oauth2Introspection: {endpoint: 'https://example.com', credentialsRef: {name: keys}}"
OTHER = "apiKey: {selector: {matchLabels: {app: other}}}"


def _read(folder: Path, *texts: str) -> Manifests:
    (folder / "all.yaml").write_text("".join(texts))
    return read_manifests([folder / "all.yaml"])


def _decide(manifests: Manifests) -> str:
    authority = Authority(manifests, strict=False)
    question = Question(ends.Anonymous(), ends.Gateway("shop", "gw"), method="GET", headers={"host": "x"})
    return str(authority.decide(question).verdict)


@pytest.mark.parametrize("how", [SELECTED, EXPRESSED, NAMED])
@pytest.mark.parametrize("data", ["data: {api_key: 'not-base64!'}", "stringData: {api_key: 1}"])
@pytest.mark.parametrize("namespace", ["shop", "elsewhere"])
def test_a_policy_that_reads_it_closes_what_it_targets(how: str, data: str, namespace: str, tmp_path: Path) -> None:
    secret = f"{KEYS.replace('NS', namespace)}{data}\n"
    manifests = _read(tmp_path, WORLD, secret, POLICY.replace("x: HOW", f"x: {{{how}}}"))
    assert [error.code.id for error in manifests.reporter.errors] == ["EG1114"]
    assert (len(manifests.closing), manifests.unattributed_errors) == (1, [])
    with pytest.raises(QuestionError, match="AuthPolicy/shop/api cannot be read"):
        _decide(manifests)


@pytest.mark.parametrize("policies", ["", POLICY.replace("x: HOW", f"x: {{{OTHER}}}")], ids=["none", "another"])
def test_what_no_policy_reads_stops_nothing(policies: str, tmp_path: Path) -> None:
    manifests = _read(tmp_path, WORLD, KEYS.replace("NS", "shop"), "data: {tls.key: 'not-base64!'}\n", policies)
    assert (manifests.reporter.errors, manifests.closing) == ([], [])
    assert [finding.code.id for finding in manifests.reporter] == ["EG1313"]
    assert _decide(manifests) == ("deny" if policies else "allow")


def test_a_broken_policy_that_reads_it_stays_broken(tmp_path: Path) -> None:
    broken = POLICY.replace("x: HOW", f"x: {{{SELECTED}}}").replace("rules:", "rulez: {}\n  rules:")
    secret = f"{KEYS.replace('NS', 'shop')}data: {{api_key: 'not-base64!'}}\n"
    manifests = _read(tmp_path, WORLD, secret, broken)
    assert "EG1114" in [error.code.id for error in manifests.reporter.errors]
    assert (len(manifests.closing), manifests.unattributed_errors) == (1, [])
