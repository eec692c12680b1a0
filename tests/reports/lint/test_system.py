"""Policies about DNS, ingress controllers, Prometheus and operators, in the usual spellings, have no finding.

Misspelt names have one.
"""

from __future__ import annotations

from itertools import product

import pytest

import eastgate
from eastgate.basics.diagnostics import Severity
from eastgate.dialects.linting.locating import distance, is_one_slip
from eastgate.dialects.linting.system import COMPONENTS, NAMESPACES, intended_namespace, is_system_namespace

WORLD = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {serviceAccountName: web, containers: [{name: c, image: i, ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: shop}
---
"""
NAME = "kubernetes.io/metadata.name"


def network(peer: str, direction: str = "ingress", port: str = "8080") -> str:
    """Return a policy of the pods of the shop: one entry, and DNS if it is about egress."""
    end = "from" if direction == "ingress" else "to"
    dns = "{ports: [{port: 53, protocol: UDP}, {port: 53}]}, " if direction == "egress" and port != "53" else ""
    ports = f"ports: [{{port: {port}}}, {{port: {port}, protocol: UDP}}]"
    types = f"policyTypes: [{direction.title()}]"
    return (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: one, namespace: shop}\n"
        f"spec: {{podSelector: {{}}, {types}, {direction}: [{dns}{{{end}: [{peer}], {ports}}}]}}\n"
    )


def selecting(namespace: str, labels: str) -> str:
    return (
        f"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: one, namespace: {namespace}}}\n"
        f"spec: {{podSelector: {{matchLabels: {{{labels}}}}}, policyTypes: [Ingress], ingress: []}}\n"
    )


def istio(source: str) -> str:
    return (
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: one, namespace: shop}\n"
        f"spec: {{selector: {{matchLabels: {{app: web}}}}, rules: [{{from: [{{source: {{{source}}}}}]}}]}}\n"
    )


def admin(subject: str) -> str:
    return (
        "apiVersion: policy.networking.k8s.io/v1alpha1\nkind: AdminNetworkPolicy\nmetadata: {name: one}\n"
        f"spec: {{priority: 10, subject: {subject}, ingress: [{{action: Deny, from: [{{namespaces: {{}}}}]}}]}}\n"
    )


def both(namespaces: str, pods: str = "") -> str:
    """Return a peer with both selectors."""
    inner = f", podSelector: {{matchLabels: {{{pods}}}}}" if pods else ""
    return f"{{namespaceSelector: {{matchLabels: {{{namespaces}}}}}{inner}}}"


KNOWN = [
    network(both(f"{NAME}: kube-system", "k8s-app: kube-dns"), "egress", "53"),
    network(both("name: kube-system", "k8s-app: kube-dns"), "egress", "53"),
    network(both(f"{NAME}: kube-system", "app.kubernetes.io/name: coredns"), "egress", "53"),
    network(both(f"{NAME}: openshift-dns", "dns.operator.openshift.io/daemonset-dns: default"), "egress", "5353"),
    network("{namespaceSelector: {}, podSelector: {matchLabels: {k8s-app: kube-dns}}}", "egress", "53"),
    network(both(f"{NAME}: kube-system", "k8s-app: konnectivity-agent")),
    network(both(f"{NAME}: kube-system", "app.kubernetes.io/name: traefik")),
    network(both(f"{NAME}: ingress-nginx", "app.kubernetes.io/name: ingress-nginx")),
    network(both("name: ingress-nginx")),
    network(both(f"{NAME}: traefik", "app.kubernetes.io/instance: traefik-traefik")),
    network(both(f"{NAME}: projectcontour", "app: envoy")),
    network(both(f"{NAME}: kong")),
    network(both(f"{NAME}: haproxy-controller")),
    network(both(f"{NAME}: istio-system", "istio: ingressgateway")),
    network(both("network.openshift.io/policy-group: ingress")),
    network(both('policy-group.network.openshift.io/ingress: ""')),
    network(both("network.openshift.io/policy-group: monitoring")),
    network(both(f"{NAME}: openshift-kube-apiserver-operator", "app: kube-apiserver-operator")),
    network(both(f"{NAME}: openshift-user-workload-monitoring")),
    network(both(f"{NAME}: monitoring", "app.kubernetes.io/name: prometheus")),
    network(both(f"{NAME}: observability", "app.kubernetes.io/name: vmagent")),
    network(both(f"{NAME}: cattle-monitoring-system")),
    network(both(f"{NAME}: flux-system")),
    network(both(f"{NAME}: argocd", "app.kubernetes.io/name: argocd-server")),
    network(both(f"{NAME}: gatekeeper-system", "gatekeeper.sh/system: 'yes'")),
    network(f"{{namespaceSelector: {{matchExpressions: [{{key: {NAME}, operator: In, values: [monitoring, x]}}]}}}}"),
    selecting("kube-system", "k8s-app: kube-dns"),
    selecting("kube-system", "svccontroller.k3s.cattle.io/svcname: traefik"),
    selecting("kube-system", "app.kubernetes.io/name: traefik"),
    selecting("kube-system", "k8s-app: metrics-server"),
    selecting("flux-system", "app: notification-controller"),
    selecting("monitoring", "app.kubernetes.io/name: kube-state-metrics"),
    selecting("cert-manager", "app: webhook"),
    selecting("argocd", "app.kubernetes.io/name: argocd-notifications-controller"),
    selecting("longhorn-system", "longhorn.io/component: instance-manager"),
    istio("principals: [cluster.local/ns/istio-system/sa/istio-ingressgateway-service-account]"),
    istio("principals: [cluster.local/ns/istio-ingress/sa/istio-ingress]"),
    istio("principals: [cluster.local/ns/monitoring/sa/prometheus-k8s]"),
    istio("principals: [cluster.local/ns/linkerd-viz/sa/prometheus]"),
    istio("namespaces: [istio-system, monitoring, ingress-nginx, knative-serving]"),
    admin(f"{{namespaces: {{matchLabels: {{{NAME}: kube-system}}}}}}"),
]
MISSPELT = [
    (network(both(f"{NAME}: kube-system", "k8s-app: kube-dsn")), "EG6301", "k8s-app: kube-dns"),
    (network(both("name: kube-system", "k8s-app: core-dn")), "EG6301", "k8s-app: core-dns"),
    (network(both(f"{NAME}: ingres-nginx")), "EG6302", "ingress-nginx"),
    (network(both(f"{NAME}: kube-sytem", "k8s-app: kube-dns")), "EG6302", "kube-system"),
    (network(both(f"{NAME}: moniotring", "app: prometheus")), "EG6302", "monitoring"),
    (network("{podSelector: {matchLabels: {k8s-app: kube-dns}}}"), "EG6301", ""),
    (selecting("kube-system", "k8s-app: kube-dsn"), "EG6001", "k8s-app: kube-dns"),
    (selecting("shop", "app: wbe"), "EG6001", ""),
    (
        istio("principals: [cluster.local/ns/istio-sytem/sa/istio-ingressgateway-service-account]"),
        "EG6007",
        "istio-system",
    ),
    (istio("namespaces: [monitorng]"), "EG6007", "monitoring"),
    (istio("namespaces: [billing]"), "EG6005", "billing"),
    (admin(f"{{namespaces: {{matchLabels: {{{NAME}: kube-sytem}}}}}}"), "EG6001", ""),
]
_ABSENT = ("EG6001", "EG6002", "EG6004", "EG6005", "EG6007", "EG6301", "EG6302", "EG6304", "EG6305", "EG6306")


def found(manifest: str) -> list[tuple[str, str]]:
    findings = eastgate.from_text(WORLD + manifest).lint()
    return [(finding.code.id, finding.help or "") for finding in findings if finding.code.id in _ABSENT]


@pytest.mark.parametrize("manifest", KNOWN)
def test_objects_of_every_cluster_are_known(manifest: str) -> None:
    assert found(manifest) == []


@pytest.mark.parametrize(("manifest", "code", "meant"), MISSPELT)
def test_a_misspelt_system_name_is_found(manifest: str, code: str, meant: str) -> None:
    [(its_code, help_)] = found(manifest)
    assert its_code == code
    assert meant in help_


def test_pods_of_the_cluster_in_a_namespace_that_is_read_are_looked_for() -> None:
    """Manifests with pods in a namespace of the cluster are read like any other namespace, with its known labels."""
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: api, namespace: monitoring, labels: {app: api}}\n"
        "spec: {containers: [{name: c, image: i}]}\n---\n"
    )
    assert found(pod + network(both(f"{NAME}: monitoring", "app: prometheus"))) == []
    assert [code for code, _ in found(pod + network(both(f"{NAME}: monitoring", "app: other")))] == ["EG6301"]


def test_a_declared_namespace_has_only_its_declared_labels() -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system}\n---\n"
    by_label = network(both("name: kube-system"))
    assert found(by_label) == []
    [(code, help_)] = found(namespace + by_label)
    assert (code, f"{NAME}: kube-system" in help_) == ("EG6302", True)
    assert found(namespace + network(both(f"{NAME}: kube-system"))) == []


def test_two_entries_instead_of_one_are_reported_only_with_known_pods() -> None:
    def split(labels: str) -> str:
        return network(f"{{podSelector: {{matchLabels: {{{labels}}}}}}}, {both(f'{NAME}: kube-system')}")

    assert [code for code, _ in found(split("k8s-app: kube-dns"))] == ["EG6304"]
    assert [code for code, _ in found(split("app: web"))] == []


def test_a_namespace_that_is_known_is_no_misspelling_of_another() -> None:
    assert [name for name in NAMESPACES if intended_namespace(name) is not None] == []
    assert is_system_namespace("openshift-anything")
    assert intended_namespace("payments") is None


def test_one_slip_is_a_distance_of_one() -> None:
    words = ["".join(letters) for length in range(6) for letters in product("ab1", repeat=length)]
    for word in words[:: len(words) // 40]:
        for other in words:
            assert (word, other, is_one_slip(word, other)) == (word, other, distance(word, other) == 1)


def test_every_component_says_why_it_is_in_no_manifests() -> None:
    assert all(component.why for component in COMPONENTS)


def test_a_policy_of_istio_in_a_read_namespace_still_needs_its_accounts() -> None:
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: own, namespace: istio-system}\n---\n"
    gateway = istio("principals: [cluster.local/ns/istio-system/sa/istio-ingressgateway]")
    assert found(account + gateway) == []
    assert [code for code, _ in found(account + istio("principals: [cluster.local/ns/istio-system/sa/other]"))] == [
        "EG6004"
    ]


def test_findings_about_the_cluster_itself_are_warnings_at_most() -> None:
    findings = eastgate.from_text(WORLD + MISSPELT[0][0]).lint()
    assert {finding.severity for finding in findings} <= {Severity.WARNING, Severity.INFO}
