"""Statements about pods cover ExternalWorkloads too, because questions name both alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate import Settings
from eastgate.cluster.ends import Pod
from eastgate.reports.tables import read_tables, run_tables

_STATEMENT = """
apiVersion: eastgate.dev/v1alpha1
kind: Invariant
metadata: {{name: closed}}
spec:
  objects:
  - apiVersion: workload.linkerd.io/v1beta1
    kind: ExternalWorkload
    metadata: {{name: vm, namespace: app, labels: {{app: vm}}}}
    spec:
      meshTLS: {{identity: spiffe://cluster.local/vm, serverName: vm.cluster.local}}
      workloadIPs: [{{ip: 10.0.0.9}}]
      ports: [{{port: 8080}}]
  never:
    from: {{anonymous: true}}
    to: {to}
    ports: [8080]
  existingOnly: true
"""


@pytest.mark.parametrize(
    "to", ["{pods: {matchLabels: {app: vm}}}", "{namespaces: {matchLabels: {kubernetes.io/metadata.name: app}}}"]
)
def test_an_external_workload_that_is_open_breaks_them(tmp_path: Path, to: str) -> None:
    file = tmp_path / "statement.yaml"
    file.write_text(_STATEMENT.format(to=to), encoding="utf-8")
    tables, _ = read_tables([file], Settings())
    (result,) = run_tables(tables).results
    assert result.finding is not None
    assert result.finding.counterexample is not None
    assert result.finding.counterexample.question.destination == Pod("app", "vm")
