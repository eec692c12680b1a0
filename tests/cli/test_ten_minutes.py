"""The first ten minutes of a team with Istio and network policies: no default output has words of Eastgate's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Cli = Callable[..., Result]

NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata: {{name: {namespace}, labels: {{istio-injection: enabled}}}}
---
"""
WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      serviceAccountName: {name}
      containers: [{{name: c, image: c, ports: [{{name: {port}, containerPort: 8080}}]}}]
---
"""
POLICIES = """\
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: orders}
spec: {mtls: {mode: STRICT}}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: payments-from-orders, namespace: orders}
spec:
  selector: {matchLabels: {app: payments}}
  rules:
  - from: [{source: {principals: [cluster.local/ns/orders/sa/orders-api]}}]
  - to: [{operation: {methods: [POST], paths: [/charge]}}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: no-admin, namespace: orders}
spec: {action: DENY, rules: [{to: [{operation: {paths: [/admin*]}}]}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: postgres, namespace: data}
spec:
  podSelector: {matchLabels: {app: postgres}}
  ingress:
  - from:
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: orders}}
    - podSelector: {matchLabels: {app: orders-api}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: redis, namespace: data}
spec:
  podSelector: {matchLabels: {app: redis}}
  ingress:
  - from:
    - namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [data]}]}
"""
WORKLOADS = (
    ("front", "web", "http"),
    ("front", "mobile", "http"),
    ("orders", "orders-api", "http"),
    ("orders", "payments", "http"),
    ("data", "postgres", "sql"),
    ("data", "redis", "redis"),
)
OWN = (
    *("vicinity", "itself or node", "that is refused", "%00", "labels of the source", "any-other*", "not ("),
    "spiffe://cluster.local/ns/*",
)


@pytest.fixture
def app(cli: Cli) -> None:
    text = "".join(NAMESPACE.format(namespace=namespace) for namespace in ("front", "orders", "data"))
    text += "".join(WORKLOAD.format(namespace=space, name=name, port=port) for space, name, port in WORKLOADS)
    Path("app.yaml").write_text(text + POLICIES, "utf-8")
    fixed = POLICIES.replace("  - to: [{operation: {m", "    to: [{operation: {m")
    Path("fixed.yaml").write_text(
        text
        + fixed.replace(
            "- podSelector: {matchLabels: {app: orders-api", "  podSelector: {matchLabels: {app: orders-api"
        ),
        "utf-8",
    )


@pytest.mark.parametrize(
    "words",
    [
        "graph -f app.yaml",
        *(f"describe pod {name} -n {namespace} -f app.yaml" for namespace, name, _ in WORKLOADS),
        "describe policy payments-from-orders -n orders -f app.yaml",
        "describe networkpolicy postgres -n data -f app.yaml",
        "diff app.yaml fixed.yaml",
        "check -f app.yaml --from sa:front/web --to deploy/orders/payments --port http",
        "explain -f app.yaml --from sa:front/web --to deploy/orders/payments --port http",
        "explain -f app.yaml --from sa:orders/payments --to deploy/data/postgres --port 5432",
    ],
)
@pytest.mark.usefixtures("app")
def test_no_output_has_words_of_eastgates_own(cli: Cli, words: str) -> None:
    result = cli(*words.split())
    assert result.exit_code in (0, 1)
    assert [word for word in OWN if word in result.output] == []
    assert len(result.stdout.splitlines()) <= 45


@pytest.mark.usefixtures("app")
def test_the_graph_has_a_row_for_what_each_policy_says(cli: Cli) -> None:
    lines = [" ".join(line.split()) for line in cli("graph", "-f", "app.yaml").stdout.splitlines()]
    assert lines[:-2] == [
        "FROM TO PORT VERDICT IF",
        "pod:orders/orders-api pod:data/postgres any allow",
        "pod:orders/payments pod:data/postgres any allow",
        "data/[pods with app=orders-api] pod:data/postgres any allow",
        "anyone in the cluster but data/* pod:data/redis any allow",
        "anyone pod:front/mobile any allow",
        "pod:front/web",
        "any identity pod:orders/orders-api any depends paths except /admin*",
        "anyone but sa:orders/orders-api, anonymous pod:orders/payments any depends POST /charge",
        "sa:orders/orders-api pod:orders/payments any depends paths except /admin*",
    ]
