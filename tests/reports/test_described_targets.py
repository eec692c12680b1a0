"""The targets in descriptions of pods are those by which the world attaches the policies."""

from __future__ import annotations

from itertools import permutations

import pytest

from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.tables import inherited_field, policies_on
from tests.reports.world import ROOT, cluster_of, example

NAMES = ("reviews", "my-reviews", "reviews-my-reviews")
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {name}, istio.io/dataplane-mode: ambient}}}}
spec: {{containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop, labels: {{istio.io/use-waypoint: waypoint}}}}
spec: {{selector: {{app: {name}}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
"""
WAYPOINT = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: waypoint, namespace: shop}
spec:
  gatewayClassName: istio-waypoint
  listeners: [{name: mesh, port: 15008, protocol: HBONE}]
---
"""
POLICY = """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: callers, namespace: shop}}
spec:
  targetRefs: [{refs}]
  rules: [{{}}]
"""


def shown(cluster: Cluster, pod: str) -> set[tuple[str, str, str]]:
    """Return the policies in `InheritedPolicies` of a pod, each with the target that selects it."""
    workload = cluster.authority.world.workloads[pod]
    rows = inherited_field(cluster, policies_on(cluster, workload), workload).data
    assert isinstance(rows, list)
    return {(row["name"], row["targetKind"], row["targetExpression"]) for row in rows}


@pytest.mark.parametrize("targeted", [refs for size in (1, 2, 3) for refs in permutations(NAMES, size)])
def test_services_with_similar_names_are_separate(targeted: tuple[str, ...]) -> None:
    refs = ", ".join(f"{{kind: Service, group: '', name: {name}}}" for name in targeted)
    cluster = cluster_of("".join(POD.format(name=name) for name in NAMES) + WAYPOINT + POLICY.format(refs=refs))
    for name in NAMES:
        assert shown(cluster, f"shop/{name}") == ({("callers", "Service", name)} if name in targeted else set())


@pytest.mark.parametrize("name", ["shop", "linkerd", "payment", "kuadrant"])
def test_every_policy_on_a_pod_is_shown_with_a_target(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    cluster = example(name)
    for key, workload in cluster.authority.world.workloads.items():
        assert {row[0] for row in shown(cluster, key)} == {policy.ref.name for policy in policies_on(cluster, workload)}
