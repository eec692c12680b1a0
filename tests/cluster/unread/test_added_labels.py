"""Policies that select by labels which a cluster adds to pods: their effect on pods of a template is unknown."""

from __future__ import annotations

import pytest

from tests.cluster.unread.conftest import Run

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: db, namespace: data}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: c, ports: [{containerPort: 80}]}]}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: data, labels: {app: db}}
spec: {containers: [{name: c, image: c, ports: [{containerPort: 80}]}]}
"""
POLICY = """\
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: closed, namespace: data}
spec:
  targetRefs: [{kind: Pod, selector: {%s}}]
  action: DENY
  rules: [{}]
"""


@pytest.mark.parametrize(
    ("selector", "status"),
    [
        ("matchLabels: {linkerd.io/control-plane-ns: linkerd}", 2),
        ("matchLabels: {app: db, pod-template-hash: abc}", 2),
        ("matchExpressions: [{key: job-name, operator: DoesNotExist}]", 2),
        ("matchLabels: {app: other, pod-template-hash: abc}", 0),
        ("matchLabels: {app: other}", 0),
    ],
)
def test_pods_of_a_template_may_be_selected(run: Run, selector: str, status: int) -> None:
    words = ("check", "--from", "sa:a/b", "--to", "pod:data/db", "--port", "80")
    done = run(DEPLOYMENT + POLICY % selector, *words)
    assert done.exit_code == status, done.output
    assert ("EG0122" in done.stderr) is (status == 2)


def test_a_real_pod_has_the_labels_that_it_has(run: Run) -> None:
    policy = POLICY % "matchLabels: {linkerd.io/control-plane-ns: linkerd}"
    assert run(POD + policy, "check", "--from", "sa:a/b", "--to", "pod:data/db", "--port", "80").exit_code == 0
