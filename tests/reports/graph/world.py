"""Worlds for tests of graphs."""

from __future__ import annotations

from pathlib import Path

from eastgate import Authority, load
from eastgate.authority.reading import sort_documents
from eastgate.cluster.unread import Handling
from eastgate.dialects import reads
from eastgate.reading.manifests import read_text
from eastgate.reports.graph import Graph, GraphSelection, Grouping, make_graph, survey
from eastgate.settings import Settings

EXAMPLES = Path(__file__).parents[3] / "examples"

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{app: {app}}}}}
spec:
  serviceAccountName: {account}
  containers: [{{name: c, image: x, ports: [{{containerPort: 8080}}]}}]
---
"""
POLICY = """
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{app: {app}}}}}}}]
  action: {action}
  rules: {rules}
---
"""


def example(name: str) -> Authority:
    return load(EXAMPLES / name / "manifests", unread=Handling.WARN)


def pod(name: str, namespace: str = "here", app: str | None = None, account: str | None = None) -> str:
    return POD.format(name=name, namespace=namespace, app=app or name, account=account or name)


def policy(name: str, app: str, rules: str, namespace: str = "here", action: str = "ALLOW") -> str:
    return POLICY.format(name=name, namespace=namespace, app=app, rules=rules, action=action)


def authority_from(text: str, settings: Settings | None = None) -> Authority:
    chosen = settings or Settings()
    reading = read_text("world.yaml", text, positioned=reads)
    return Authority(sort_documents(reading.documents, chosen, reading.reporter), chosen)


def graph_of(
    authority: Authority, selection: GraphSelection | None = None, by: Grouping | None = None, *, why: bool = True
) -> Graph:
    return make_graph(survey(authority, selection), by, why=why)


Shown = dict[tuple[str, str, int | None], tuple[str, str | None]]


def edges(graph: Graph) -> Shown:
    """Return the verdict and the condition of each edge."""
    shown: Shown = {}
    for edge in graph.edges:
        key = edge.source, edge.target, edge.port
        assert key not in shown
        shown[key] = str(edge.bundle.verdict), edge.bundle.condition
    return shown
