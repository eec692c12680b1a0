"""Pods and namespaces of the cluster itself, which are in no application's manifests: DNS, ingress, metrics, logs."""

from __future__ import annotations

from typing import Final

from eastgate.cluster.objects import NAME_LABEL
from eastgate.ir.labels import Operator, Selector

_NAMESPACES: Final = frozenset(
    [
        "calico-system",
        "cert-manager",
        "gmp-system",
        "ingress-nginx",
        "istio-system",
        "kube-node-lease",
        "kube-public",
        "kube-system",
        "linkerd",
        "monitoring",
        "nginx-ingress",
        "observability",
        "openshift-dns",
        "openshift-ingress",
        "openshift-monitoring",
        "prometheus",
        "tigera-operator",
        "traefik",
    ]
)
_PODS: Final = frozenset(
    [
        "alertmanager",
        "cert-manager",
        "coredns",
        "datadog",
        "datadog-agent",
        "dns-default",
        "egressgateway",
        "external-dns",
        "fluent-bit",
        "fluentd",
        "grafana",
        "ingress-nginx",
        "ingressgateway",
        "istio-egressgateway",
        "istio-ingressgateway",
        "istiod",
        "jaeger",
        "kube-apiserver",
        "kube-dns",
        "kube-state-metrics",
        "loki",
        "metrics-server",
        "nginx-ingress",
        "node-exporter",
        "node-local-dns",
        "nodelocaldns",
        "opentelemetry-collector",
        "otel-collector",
        "prometheus",
        "promtail",
        "traefik",
        "vector",
    ]
)


def selects_system_namespace(namespaces: Selector) -> bool:
    """Return whether a selector names a namespace of the cluster itself."""
    return any(key == NAME_LABEL and value in _NAMESPACES for key, value in _asked(namespaces))


def selects_system_pods(pods: Selector) -> bool:
    """Return whether a selector asks for a label that pods of the cluster itself have."""
    return any(value in _PODS for _, value in _asked(pods))


def _asked(selector: Selector) -> list[tuple[str, str]]:
    listed = (each for each in selector.expressions if each.operator is Operator.IN)
    return [*selector.equalities, *((each.key, value) for each in listed for value in each.values)]
