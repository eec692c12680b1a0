"""The cost of describing one pod depends on that pod, not on the size of the cluster."""

from __future__ import annotations

import json
from functools import partial

import pytest

from eastgate.basics.collection import no_collection
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe import describe
from eastgate.reports.get import listing
from tests.effort import effort_of
from tests.reports.world import cluster_of

PODS, TEAMS = 10_000, 100
CONTAINER = {"name": "c", "ports": [{"containerPort": 80}]}


def manifests() -> str:
    items: list[dict[str, object]] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{n}", "namespace": f"t{n % TEAMS}", "labels": {"app": f"a{n % 7}"}},
            "spec": {
                "serviceAccountName": f"a{n % 7}",
                "containers": [{"name": "c", "ports": [{"containerPort": 80}]}],
            },
        }
        for n in range(PODS)
    ]
    items += [
        {
            "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
            "kind": "AuthorizationPolicy",
            "metadata": {"name": f"q{n}", "namespace": f"t{n % TEAMS}"},
            "spec": {
                "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": f"a{n % 7}"}}}],
                "action": "ALLOW",
                "rules": [{"authorizationSource": {"serviceAccounts": [f"t{m}/a{m % 7}" for m in range(20)]}}],
            },
        }
        for n in range(3 * TEAMS)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _rows(cluster: Cluster, kind: str) -> int:
    return len(listing(cluster, kind).rows)


def test_one_pod_of_ten_thousand_is_described_without_a_look_at_the_others() -> None:
    cluster = cluster_of(manifests())
    with no_collection():
        text, effort = effort_of(lambda: "\n".join(describe(cluster, "pod", "p42", "t42")[0].lines()))
        assert effort < 100
        assert "Effective:" in text
        for kind, number in (("workloads", PODS), ("policies", 3 * TEAMS)):
            rows, effort = effort_of(partial(_rows, cluster, kind))
            assert (rows, effort < 1_000) == (number, True)


@pytest.mark.parametrize("many", [3_000])
def test_a_rule_for_thousands_of_callers_is_one_row(many: int) -> None:
    accounts = ", ".join(f"n/a{n}" for n in range(many))
    cluster = cluster_of(f"""
apiVersion: v1
kind: Pod
metadata: {{name: p, namespace: 'n'}}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: q, namespace: 'n'}}
spec:
  targetRefs: [{{kind: Pod, selector: {{}}}}]
  action: ALLOW
  rules: [{{authorizationSource: {{serviceAccounts: [{accounts}]}}}}]
""")
    (found,) = describe(cluster, "pod", "p", None)
    said = [" ".join(line.split()) for line in found.lines()]
    assert f"... and {many - 6} more" in said
    assert "anyone else any deny no rule allows it" in said
