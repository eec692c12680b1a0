"""The draft's own example, in a cluster that has it."""

from __future__ import annotations

from pathlib import Path

from eastgate import dialects
from eastgate.reading.manifests import read, read_text
from eastgate.reports.cluster import Cluster
from eastgate.settings import Settings

ROOT = Path(__file__).parents[2]

DRAFT = """
apiVersion: v1
kind: Pod
metadata: {name: pod1, namespace: default, labels: {foo: a, bar: "2", pod: "1"}}
spec: {serviceAccountName: payment, containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: demo-authz-policy-on-payment-pods}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {foo: a, bar: "2"}}}]
  action: ALLOW
  rules: [{authorizationSource: {serviceAccounts: [default/web]}}]
"""


def cluster_of(text: str, **settings: str) -> Cluster:
    """Return a cluster of these manifests, without findings of lint."""
    reading = read_text("manifests.yaml", text, positioned=dialects.reads)
    return quiet(Cluster.of(reading.documents, Settings.from_mapping(settings), reading.reporter))


def example(name: str) -> Cluster:
    """Return the cluster of one of the examples. The working directory must be the root, for the paths in it."""
    reading = read([f"examples/{name}/manifests"], positioned=dialects.reads)
    return quiet(Cluster.of(reading.documents, Settings(), reading.reporter))


def quiet(cluster: Cluster) -> Cluster:
    cluster.findings = []
    return cluster
