"""Manifests of pods and network policies for tests of local meshes."""

from __future__ import annotations

from eastgate import dialects
from eastgate.authority.authority import Authority
from eastgate.authority.reading import sort_documents
from eastgate.reading.manifests.reader import read_text
from eastgate.settings import Settings

PORTS = (5432, 8080, 9090)


def pod(namespace: str, name: str, account: str, labels: str, more: str = "", status: str = "{}") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{namespace: {namespace}, name: {name}, labels: {labels}}}
spec:
  serviceAccountName: {account}
  {more}
  containers:
  - {{name: c, image: c, ports: [{{containerPort: 5432, name: sql}}, {{containerPort: 8080}}, {{containerPort: 9090}}]}}
status: {status}
---"""


NAMESPACES = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: shop}}
---
apiVersion: v1
kind: Namespace
metadata: {name: front, labels: {team: web}}
---
"""
FEW = pod("shop", "db", "db", "{app: db}") + pod("shop", "a", "twin", "{app: a}") + pod("shop", "b", "twin", "{app: b}")
PODS = (
    FEW
    + pod("shop", "c", "c", "{app: c}", status="{podIP: 10.0.0.7}")
    + pod("front", "web", "web", "{app: web}")
    + pod("front", "a", "other", "{app: a}")
    + pod("front", "host", "host", "{app: a}", "hostNetwork: true", "{hostIP: 192.168.0.1}")
)
CALLERS = (
    *("pod:shop/db", "pod:shop/a", "pod:shop/b", "pod:shop/c", "pod:front/web", "pod:front/a", "pod:front/host"),
    *("sa:shop/twin", "sa:front/web", "sa:shop/no-pod", "sa:void/no-pod"),
    *("anonymous", "ip:127.0.0.9", "ip:127.0.0.20"),
)


def network_policy(spec: str, name: str = "p", namespace: str = "shop") -> str:
    return f"""
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{namespace: {namespace}, name: {name}}}
spec: {spec}
---"""


def cluster_policy(kind: str, spec: str) -> str:
    version = "v1alpha2" if kind == "ClusterNetworkPolicy" else "v1alpha1"
    return f"""
apiVersion: policy.networking.k8s.io/{version}
kind: {kind}
metadata: {{name: default}}
spec: {spec}
---"""


DB = "podSelector: {matchLabels: {app: db}}"
FROM_A = network_policy(f"{{{DB}, ingress: [{{from: [{{podSelector: {{matchLabels: {{app: a}}}}}}]}}]}}")
CLOSED = network_policy("{podSelector: {}, policyTypes: [Ingress]}", "closed")
SETS = {
    "nothing": "",
    "nobody": CLOSED,
    "pods of the namespace": CLOSED + FROM_A,
    "a namespace": network_policy(
        f"{{{DB}, ingress: [{{from: [{{namespaceSelector: {{matchLabels: {{team: web}}}}}}]}}]}}"
    ),
    "pods of another namespace": network_policy(
        f"{{{DB}, ingress: [{{from: [{{namespaceSelector: {{matchLabels: {{team: web}}}},"
        " podSelector: {matchLabels: {app: a}}}]}]}"
    ),
    "all but some": network_policy(
        f"{{{DB}, ingress: [{{from: [{{podSelector: {{matchExpressions: [{{key: app, operator: NotIn,"
        " values: [a]}]}}]}]}"
    ),
    "a namespace that no manifest declares": network_policy(
        f"{{{DB}, ingress: [{{from: [{{namespaceSelector:"
        " {matchLabels: {kubernetes.io/metadata.name: void}}}]}]}"
    ),
    "ports": network_policy(
        f"{{{DB}, ingress: [{{ports: [{{port: sql}}, {{port: 9000, endPort: 9100}}]}},"
        " {from: [{podSelector: {matchLabels: {app: c}}}], ports: [{port: 8080}, {port: 9090, protocol: UDP}]}]}"
    ),
    "addresses": network_policy(
        f"{{{DB}, ingress: [{{from: [{{ipBlock: {{cidr: 0.0.0.0/0, except: [127.0.0.16/28, 10.0.0.0/8]}}}}]}}]}}"
    ),
    "addresses of pods": network_policy(f"{{{DB}, ingress: [{{from: [{{ipBlock: {{cidr: 10.0.0.0/8}}}}]}}]}}"),
    "egress": network_policy(
        "{podSelector: {matchExpressions: [{key: app, operator: In, values: [b, c]}]}, policyTypes: [Egress],"
        f" egress: [{{to: [{{{DB}}}], ports: [{{port: 8080}}]}}]}}"
    ),
    "egress of a namespace that no manifest declares": network_policy(
        "{podSelector: {}, policyTypes: [Egress]}", "out", "void"
    ),
    "egress of a namespace that only an admin names": cluster_policy(
        "ClusterNetworkPolicy",
        "{tier: Admin, priority: 1, subject: {namespaces: {matchLabels: {kubernetes.io/metadata.name: void}}},"
        " egress: [{action: Deny, to: [{namespaces: {}}]}]}",
    ),
    "both ends": FROM_A + network_policy("{podSelector: {matchLabels: {app: a}}, policyTypes: [Egress]}", "egress"),
    "a cluster's admin": FROM_A
    + cluster_policy(
        "ClusterNetworkPolicy",
        "{tier: Admin, priority: 1, subject: {namespaces: {matchLabels: {team: shop}}}, ingress: ["
        "{action: Accept, from: [{namespaces: {matchLabels: {team: web}}}],"
        " protocols: [{tcp: {destinationPort: {number: 9090}}}]},"
        "{action: Deny, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: a}}}}],"
        " protocols: [{tcp: {destinationPort: {number: 8080}}}]}]}",
    ),
    "an admin and a baseline": cluster_policy(
        "AdminNetworkPolicy",
        "{priority: 1, subject: {namespaces: {matchLabels: {team: shop}}}, ingress: ["
        "{action: Allow, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: b}}}}]},"
        "{action: Pass, from: [{namespaces: {matchLabels: {team: web}}}],"
        " ports: [{portNumber: {protocol: TCP, port: 8080}}]},"
        "{action: Deny, from: [{namespaces: {matchLabels: {team: web}}}]}]}",
    )
    + cluster_policy(
        "BaselineAdminNetworkPolicy",
        "{subject: {namespaces: {matchLabels: {team: shop}}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}",
    ),
}


def read(text: str, settings: Settings | None = None) -> Authority:
    chosen = settings or Settings()
    reading = read_text("manifests.yaml", text, positioned=dialects.reads)
    return Authority(sort_documents(reading.documents, chosen, reading.reporter), chosen)
