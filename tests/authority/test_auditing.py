"""Would-be effects of audited policies: one line for each, and a verdict that is not enforced."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from eastgate import Decision, Question, load
from eastgate.cli import main

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: cart}, annotations: {linkerd.io/inject: enabled}}
spec: {serviceAccountName: cart, containers: [{name: c, image: x, ports: [{name: http, containerPort: 8080}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {linkerd.io/inject: enabled}}
spec: {serviceAccountName: web, containers: [{name: c, image: x}]}
---
"""
AUDIT = "annotations: {eastgate.dev/mode: audit}"
GEP = """
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: NAME, namespace: shop, MODE}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: cart}}}]
  action: ACTION
  rules: [{authorizationSource: {serviceAccounts: [web]}}]
"""
ISTIO = """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: NAME, namespace: shop, MODE}
spec:
  selector: {matchLabels: {app: cart}}
  action: ACTION
  rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/web]}}]}]
"""
SERVER = """
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: cart, namespace: shop, MODE}
spec: {podSelector: {matchLabels: {app: cart}}, port: 8080, accessPolicy: ACTION}
"""
NETWORK = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: cart, namespace: shop, MODE}
spec: {podSelector: {matchLabels: {app: cart}}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}
"""
DRY_RUN = 'annotations: {istio.io/dry-run: "true"}'


def policy(template: str, action: str = "ALLOW", mode: str = AUDIT, name: str = "p") -> str:
    return template.replace("NAME", name).replace("ACTION", action).replace("MODE", mode)


def decide(tmp_path: Path, source: str, *policies: str) -> Decision:
    file = tmp_path / "all.yaml"
    file.write_text(PODS + "---".join(policies))
    return load(file).decide(Question.of(source, "pod:shop/cart", port=8080, method="GET", path="/"))


A = "AuthorizationPolicy/shop/p"
NO_RULE = "would deny it: no rule allows it"
ROWS = [
    ("an allow-list, and a caller that is not on it", [policy(GEP)], "sa:shop/x", True, [f"{A} {NO_RULE}"]),
    ("a caller that is on it", [policy(GEP)], "sa:shop/web", True, [f"{A} would allow it too: rule 0"]),
    ("a DENY policy that matches", [policy(GEP, "DENY")], "sa:shop/web", True, [f"{A} would deny it: rule 0"]),
    (
        "an allow-list beside one in force, which it widens",
        [policy(GEP, mode="labels: {}", name="q").replace("[web]", "[other]"), policy(GEP)],
        "sa:shop/web",
        False,
        [f"{A} would allow it: rule 0"],
    ),
    (
        "a denial that it does not change",
        [policy(GEP, mode="labels: {}", name="q"), policy(GEP)],
        "sa:shop/x",
        False,
        [],
    ),
    (
        "two allow-lists together",
        [policy(GEP), policy(GEP, name="q")],
        "sa:shop/x",
        True,
        [f"{A} {NO_RULE}", f"AuthorizationPolicy/shop/q {NO_RULE}"],
    ),
    (
        "Istio's dry run",
        [policy(ISTIO, mode=DRY_RUN)],
        "sa:shop/x",
        True,
        [f"{A} {NO_RULE}"],
    ),
    (
        "Istio's dry run of DENY",
        [policy(ISTIO, "DENY", mode=DRY_RUN)],
        "sa:shop/web",
        True,
        [f"{A} would deny it: rule 0"],
    ),
    (
        "Istio's AUDIT only logs",
        [policy(ISTIO, "AUDIT", mode="labels: {}")],
        "sa:shop/web",
        True,
        [f"{A} matches it: rule 0; the action AUDIT only logs it"],
    ),
    ("Istio's AUDIT without a match", [policy(ISTIO, "AUDIT", mode="labels: {}")], "sa:shop/x", True, []),
    (
        "a Server of Linkerd in audit mode",
        [policy(SERVER, "deny")],
        "sa:shop/web",
        True,
        [f"Server/shop/cart {NO_RULE}"],
    ),
    (
        "Linkerd's accessPolicy audit",
        [policy(SERVER, "audit", mode="labels: {}")],
        "sa:shop/web",
        True,
        [f"Server/shop/cart {NO_RULE}"],
    ),
    ("a NetworkPolicy, and a pod that it selects", [policy(NETWORK)], "pod:shop/cart", True, []),
    (
        "a NetworkPolicy, and an address",
        [policy(NETWORK)],
        "ip:10.9.9.9",
        True,
        [f"NetworkPolicy/shop/cart {NO_RULE}"],
    ),
]


@pytest.mark.parametrize(
    ("policies", "source", "allowed", "texts"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_what_an_audited_policy_would_do(
    tmp_path: Path, policies: list[str], source: str, allowed: bool, texts: list[str]
) -> None:
    decision = decide(tmp_path, source, *policies)
    assert decision.allowed is allowed
    assert [each.text for each in decision.audit] == texts
    assert all(each.span is not None and each.span.file.endswith("all.yaml") for each in decision.audit)


def test_a_default_policy_of_linkerd_can_be_audited(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(PODS.replace("linkerd.io/inject: enabled", "config.linkerd.io/default-inbound-policy: audit"))
    decision = load(file).decide(Question.of("sa:shop/web", "pod:shop/cart", port=8080, method="GET", path="/"))
    [audited] = decision.audit
    assert decision.allowed
    assert not decision.would_be.allowed
    assert (audited.policy, audited.verdict, audited.changes) == (None, "deny", True)


@pytest.mark.parametrize("command", ["check", "explain"])
def test_the_commands_report_it_and_keep_their_status(tmp_path: Path, command: str) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(PODS + policy(GEP))
    asked = [command, "-f", str(file), "--from", "sa:shop/x", "--to", "pod:shop/cart", "--port", "8080"]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 0
    assert f"AUDIT  {A} {NO_RULE}  ({file}:13)\n" in result.output
    [audited] = json.loads(CliRunner().invoke(main, [*asked, "-o", "json"]).output)["audit"]
    assert audited == {
        "policy": A,
        "verdict": "deny",
        "rule": None,
        "file": str(file),
        "line": 13,
        "reason": "no rule allows it",
        "changes": True,
    }


def test_lint_names_the_audited_policy_that_check_names_for_its_example(tmp_path: Path) -> None:
    to_admin = policy(ISTIO, "DENY", DRY_RUN, "block").replace(
        "from: [{source: {principals: [", "to: [{operation: {paths: ["
    )
    listed = policy(ISTIO, "ALLOW", DRY_RUN, "list")
    text = "---".join([listed, to_admin.replace("cluster.local/ns/shop/sa/web", '"/admin*"')])
    (tmp_path / "all.yaml").write_text(PODS + text)
    command = ["-f", str(tmp_path), "--set", "istioDataPlane=sidecar"]
    found = json.loads(CliRunner().invoke(main, ["lint", *command, "-o", "json"]).stdout)["findings"]
    examples = {each["subjects"][0]: each["example"] for each in found if each["code"] == "EG6046"}
    assert set(examples) == {"AuthorizationPolicy/shop/list", "AuthorizationPolicy/shop/block"}
    for name, example in examples.items():
        checked = CliRunner().invoke(main, shlex.split(example)[1:])
        assert f"AUDIT  {name} would deny it" in checked.stdout, checked.stdout


ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: shop}
spec: {gatewayClassName: x, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {selector: {app: cart}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: shop}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: cart, port: 80}]}]}
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: keys, namespace: shop, annotations: {eastgate.dev/mode: audit}}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: KIND, name: NAME}
  rules: {authentication: {one: HOW}}
"""
KEY = "{apiKey: {selector: {matchLabels: {app: keys}}}}"


@pytest.mark.parametrize(
    ("kind", "name", "how", "where"),
    [
        ("HTTPRoute", "r", KEY, "HTTPRoute shop/r"),
        ("Gateway", "gw", KEY, "Gateway shop/gw"),
        ("HTTPRoute", "r", "{anonymous: {}}", None),
    ],
)
def test_an_audited_policy_on_routes_is_tried_without_credentials(
    tmp_path: Path, kind: str, name: str, how: str, where: str | None
) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(PODS + ROUTE.replace("KIND", kind).replace("NAME", name).replace("HOW", how))
    found = json.loads(CliRunner().invoke(main, ["lint", "-f", str(file), "-o", "json"]).stdout)["findings"]
    messages = [(each["message"], each["example"]) for each in found if each["code"] == "EG6046"]
    asked = Question.of("anonymous", "route:shop/r", method="GET", path="/", headers={"accept": "*/*"})
    assert load(file).decide(asked).would_be.allowed is (where is None)
    would = f"if it were enforced, AuthPolicy/shop/keys would deny requests without credentials at {where}"
    assert [message for message, _ in messages] == ([would] if where else [])
    for _, example in messages:
        assert "AUDIT  AuthPolicy/shop/keys would deny it" in CliRunner().invoke(main, shlex.split(example)[1:]).stdout
