"""Namespaces, pods and accounts of the cluster itself, which are not in the manifests of applications.

The cluster or its platform installs them: DNS, ingress controllers, metrics, operators. A policy about them is correct
even if no manifest has them. So lint does not report names of the components in this list.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.cluster.objects import NAME_LABEL
from eastgate.dialects.linting.locating import corrected_name
from eastgate.ir.labels import Operator, Selector

_Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SystemComponent:
    """A part of clusters. `why` says why the manifests of applications do not contain it.

    `apps` are values of labels that name an application, under any key. `labels` are its other labels.
    """

    why: str
    namespaces: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    labels: _Labels = ()
    accounts: tuple[str, ...] = ()
    namespace_labels: _Labels = ()


def _of(
    why: str,
    namespaces: str = "",
    apps: str = "",
    accounts: str = "",
    labels: _Labels = (),
    namespace_labels: _Labels = (),
) -> SystemComponent:
    return SystemComponent(
        why, tuple(namespaces.split()), tuple(apps.split()), labels, tuple(accounts.split()), namespace_labels
    )


_ROUTER_LABELS: Final = (
    ("network.openshift.io/policy-group", "ingress"),
    ("policy-group.network.openshift.io/ingress", ""),
)

COMPONENTS: Final[tuple[SystemComponent, ...]] = (
    # Kubernetes
    _of("the API server makes these namespaces", "default kube-node-lease kube-public kube-system"),
    _of(
        "kubeadm, k3s and providers of clusters install the DNS of the cluster",
        "kube-system",
        "coredns core-dns kube-dns kubedns rke2-coredns node-local-dns nodelocaldns dns-autoscaler kube-dns-autoscaler",
        "coredns kube-dns node-local-dns",
    ),
    _of(
        "installers run the control plane as static pods",
        "kube-system",
        "kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd cloud-controller-manager",
        "kube-proxy",
        (("tier", "control-plane"),),
    ),
    _of(
        "providers of clusters run the tunnel from the control plane to the nodes",
        "kube-system",
        "konnectivity-agent konnectivity-server proxy-agent",
        "konnectivity-agent",
    ),
    _of(
        "providers of clusters install it; the API server reads metrics from it",
        "kube-system",
        "metrics-server rke2-metrics-server",
        "metrics-server",
    ),
    _of("k3s and kind install it", "kube-system local-path-storage", "local-path-provisioner"),
    # Networks
    _of(
        "the network of the cluster is installed before anything else",
        "calico-apiserver calico-system cilium cilium-secrets kube-flannel kube-ovn metallb-system multus "
        "ovn-kubernetes tigera-operator",
        "antrea-agent antrea-controller aws-node azure-cns calico-node calico-kube-controllers calico-typha cilium "
        "cilium-agent cilium-operator flannel hubble-relay hubble-ui kube-router metallb multus weave-net",
    ),
    # Gateways and ingress controllers
    _of(
        "ingress-nginx and NGINX's own controller are installed once for a cluster",
        "ingress-nginx nginx-ingress ingress nginx-gateway",
        "ingress-nginx nginx-ingress nginx-ingress-controller rke2-ingress-nginx nginx-gateway-fabric",
        "ingress-nginx nginx-ingress",
        namespace_labels=(("ingress", "nginx"),),
    ),
    _of(
        "k3s installs Traefik, others do once for a cluster",
        "traefik traefik-system traefik-v2",
        "traefik",
        "traefik",
        (("svccontroller.k3s.cattle.io/svcname", "traefik"),),
    ),
    _of(
        "the ingress controller is installed once for a cluster",
        "apisix contour contour-internal contour-external emissary emissary-system haproxy-controller haproxy-ingress "
        "ingress-apisix ingress-controller ingress-haproxy kong kong-system projectcontour",
        "ambassador apisix contour emissary-ingress haproxy-ingress haproxy-kubernetes-ingress kong kong-gateway "
        "kubernetes-ingress",
        "contour envoy haproxy-ingress kong",
    ),
    _of(
        "the Gateway API controller is installed once for a cluster",
        "agentgateway-system envoy-gateway-system gateway-system gloo-system kgateway-system kuadrant-system",
        "authorino envoy-gateway gateway-helm gloo kgateway",
        "authorino envoy-gateway",
    ),
    _of("the operator runs tunnels or VPNs of the cluster", "cloudflared tailscale", "cloudflared tailscale"),
    _of(
        "OpenShift installs its routers",
        "openshift-ingress openshift-ingress-operator",
        "",
        "router",
        (("ingresscontroller.operator.openshift.io/deployment-ingresscontroller", "default"),),
        _ROUTER_LABELS,
    ),
    # Meshes
    _of(
        "istioctl, Helm or an operator install Istio and its gateways",
        "aks-istio-ingress aks-istio-system asm-system istio-egress istio-gateway istio-gateways istio-ingress "
        "istio-operator istio-system kiali-operator",
        "egressgateway ingressgateway istio-egress istio-egressgateway istio-gateway istio-ingress "
        "istio-ingressgateway istiod kiali ztunnel",
        "istio-egressgateway istio-egressgateway-service-account istio-ingress istio-ingressgateway "
        "istio-ingressgateway-service-account istio-reader-service-account istiod istiod-service-account kiali "
        "kiali-service-account ztunnel",
    ),
    _of(
        "the CLI or Helm installs Linkerd and its extensions",
        "linkerd linkerd-cni linkerd-jaeger linkerd-multicluster linkerd-smi linkerd-viz",
        "linkerd-destination linkerd-identity linkerd-proxy-injector metrics-api tap tap-injector",
        "linkerd-destination linkerd-gateway linkerd-heartbeat linkerd-identity linkerd-proxy-injector metrics-api "
        "prometheus tap tap-injector web",
        (
            ("linkerd.io/control-plane-component", "destination"),
            ("linkerd.io/control-plane-component", "identity"),
            ("linkerd.io/control-plane-component", "proxy-injector"),
            ("linkerd.io/extension", "viz"),
        ),
        (("linkerd.io/extension", "viz"), ("linkerd.io/is-control-plane", "true")),
    ),
    # Observability
    _of(
        "Prometheus is installed once for a cluster, mostly by a chart",
        "cattle-monitoring-system gmp-system kube-prometheus kube-prometheus-stack monitoring observability "
        "prometheus prometheus-operator victoria-metrics",
        "alertmanager kube-prometheus-stack kube-prometheus-stack-prometheus kube-state-metrics node-exporter "
        "prometheus prometheus-node-exporter prometheus-adapter prometheus-operator prometheus-server pushgateway "
        "vmagent victoria-metrics-agent",
        "kube-prometheus-stack-prometheus kube-state-metrics prometheus prometheus-k8s prometheus-operator "
        "prometheus-server vmagent",
    ),
    _of(
        "dashboards, logs and traces are collected for the whole cluster",
        "amazon-cloudwatch cattle-logging-system datadog elastic-system gatus grafana jaeger logging logs loki "
        "newrelic opentelemetry opentelemetry-operator-system otel splunk tempo tracing",
        "alloy datadog datadog-agent datadog-cluster-agent filebeat fluent-bit fluentbit fluentd fluentd-gcp grafana "
        "grafana-agent jaeger k8s-monitoring loki newrelic opentelemetry-collector otel-collector promtail tempo "
        "vector zipkin",
        "alloy datadog datadog-agent fluent-bit fluentd grafana grafana-agent jaeger loki opentelemetry-collector "
        "otel-collector promtail tempo vector",
    ),
    _of(
        "OpenShift installs its monitoring and logging",
        "openshift-logging openshift-monitoring openshift-user-workload-monitoring",
        "thanos-querier",
        "prometheus-k8s prometheus-user-workload thanos-querier",
        (),
        (("network.openshift.io/policy-group", "monitoring"), ("openshift.io/cluster-monitoring", "true")),
    ),
    # OpenShift
    _of(
        "OpenShift installs its DNS",
        "openshift-dns openshift-dns-operator",
        "dns-default",
        "dns",
        (("dns.operator.openshift.io/daemonset-dns", "default"),),
    ),
    _of(
        "OpenShift runs its control plane and operators",
        "openshift openshift-apiserver openshift-apiserver-operator openshift-authentication openshift-cluster-version "
        "openshift-config openshift-config-managed openshift-console openshift-gitops openshift-gitops-operator "
        "openshift-image-registry openshift-infra openshift-kube-apiserver openshift-kube-apiserver-operator "
        "openshift-machine-api openshift-marketplace openshift-multus openshift-network-operator openshift-operators "
        "openshift-operator-lifecycle-manager openshift-ovn-kubernetes openshift-pipelines openshift-sdn "
        "openshift-service-ca openshift-storage",
        "kube-apiserver-operator openshift-kube-apiserver",
        namespace_labels=(
            ("network.openshift.io/policy-group", "hostNetwork"),
            ("network.openshift.io/policy-group", "host-network"),
            ("policy-group.network.openshift.io/host-network", ""),
            ("network.openshift.io/policy-group", "console"),
        ),
    ),
    # Operators
    _of("it issues certificates for the cluster", "cert-manager", "cainjector cert-manager webhook", "cert-manager"),
    _of(
        "Flux installs itself",
        "flux-system",
        "helm-controller image-automation-controller image-reflector-controller kustomize-controller "
        "notification-controller source-controller source-watcher",
        "helm-controller kustomize-controller notification-controller source-controller",
    ),
    _of(
        "Argo CD is installed before the applications that it deploys",
        "argo argo-cd argo-events argo-rollouts argo-workflows argocd",
        "argo-cd argo-rollouts argocd argocd-application-controller argocd-applicationset-controller "
        "argocd-commit-server argocd-dex-server argocd-notifications-controller argocd-redis argocd-redis-ha-haproxy "
        "argocd-repo-server argocd-server",
        "argocd-application-controller argocd-repo-server argocd-server",
    ),
    _of(
        "admission controllers are called by the API server and watch the whole cluster",
        "gatekeeper-system kyverno",
        "gatekeeper kyverno",
        "gatekeeper-admin",
        (("gatekeeper.sh/operation", "audit"), ("gatekeeper.sh/operation", "webhook"), ("gatekeeper.sh/system", "yes")),
    ),
    _of(
        "the manager of Longhorn makes these pods, and labels its own",
        "",
        "longhorn-csi-plugin",
        labels=(
            *(("longhorn.io/component", name) for name in ("backing-image-data-source", "backing-image-manager")),
            *(("longhorn.io/component", name) for name in ("instance-manager", "share-manager")),
            ("longhorn.io/managed-by", "longhorn-manager"),
            ("longhorn.io/admission-webhook", "longhorn-admission-webhook"),
            ("longhorn.io/conversion-webhook", "longhorn-conversion-webhook"),
            ("longhorn.io/recovery-backend", "longhorn-recovery-backend"),
        ),
    ),
    _of(
        "the operator serves the whole cluster",
        "actions-runner-system autoscaling cattle-fleet-system cattle-system cnpg-system crossplane-system "
        "external-dns external-secrets gpu-operator keda keda-system knative-eventing knative-operator knative-serving "
        "kourier-system kube-tools longhorn-system olm operators reloader rook-ceph sealed-secrets spire "
        "spire-server spire-system system-upgrade trivy-system vault vault-secrets-operator velero volsync-system",
        "activator autoscaler cloudnative-pg cluster-autoscaler external-dns external-secrets karpenter keda "
        "keda-operator keda-operator-metrics-apiserver reloader sealed-secrets spire-agent spire-server velero",
        "cluster-autoscaler external-dns external-secrets karpenter keda-operator spire-agent spire-server velero",
    ),
)
"""All known components, each with its reason."""

NAMESPACES: Final = frozenset(name for component in COMPONENTS for name in component.namespaces)
_APPS: Final = frozenset(app for component in COMPONENTS for app in component.apps)
_POD_LABELS: Final = frozenset(pair for component in COMPONENTS for pair in component.labels)
_ACCOUNTS: Final = frozenset(
    (home, account) for component in COMPONENTS for home in component.namespaces for account in component.accounts
)
_NAME_LABELS: Final = (NAME_LABEL, "name", "kubernetes.io/name", "app.kubernetes.io/name", "namespace")
"""Labels with the name of a namespace. Kubernetes writes the first; users write the others."""
_NAMESPACE_LABELS: Final = frozenset(
    {pair for component in COMPONENTS for pair in component.namespace_labels}
    | {(key, name) for name in NAMESPACES for key in _NAME_LABELS}
)


@dataclass(frozen=True, slots=True)
class DnsServer:
    """A pod that serves the DNS of a cluster, and its port."""

    namespace: str
    labels: Mapping[str, str]
    port: int = 53


DNS_SERVERS: Final = (
    DnsServer("kube-system", {"k8s-app": "kube-dns"}),
    DnsServer("kube-system", {"k8s-app": "coredns", "app.kubernetes.io/name": "coredns"}),
    DnsServer("kube-system", {"k8s-app": "kube-dns", "app.kubernetes.io/name": "rke2-coredns"}),
    DnsServer("kube-system", {"k8s-app": "node-local-dns"}),
    DnsServer("openshift-dns", {"dns.operator.openshift.io/daemonset-dns": "default"}, 5353),
)
"""The DNS of clusters of several makers."""


def namespace_labels(name: str, labels: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
    """Return the possible labels of a system namespace: its own, and these with common labels of users."""
    return labels, {**dict.fromkeys(_NAME_LABELS, name), **labels}


def is_system_namespace(name: str) -> bool:
    """Return whether a namespace belongs to the cluster itself, or to a common platform."""
    return name in NAMESPACES or name.startswith("openshift-")


def is_system_account(namespace: str, account: str) -> bool:
    """Return whether a component of clusters runs as this account."""
    return (namespace, account) in _ACCOUNTS


def selects_system_namespace(namespaces: Selector, declared: Collection[str] = ()) -> bool:
    """Return whether a selector names a namespace of the cluster itself.

    The manifests contain the labels of the namespaces in `declared`.
    """
    return any(
        is_system_namespace(value) if key == NAME_LABEL else (key, value) in _NAMESPACE_LABELS and value not in declared
        for key, value in _asked(namespaces)
    )


def selects_system_pods(pods: Selector) -> bool:
    """Return whether a selector demands a label of system pods."""
    return any(value in _APPS or (key, value) in _POD_LABELS for key, value in _asked(pods))


def intended_namespace(name: str) -> str | None:
    """Return the system namespace that a name misspells, or None."""
    return None if is_system_namespace(name) else corrected_name(name, NAMESPACES)


def intended_label(pods: Selector) -> tuple[str, str, str] | None:
    """Return the label of system pods that a selector misspells: key, value, and the correct value."""
    if selects_system_pods(pods):
        return None
    meant = ((key, value, _intended_app(value)) for key, value in _asked(pods))
    return next(((key, value, close) for key, value, close in meant if close is not None), None)


@lru_cache(maxsize=4096)
def _intended_app(value: str) -> str | None:
    return corrected_name(value, _APPS)


def _asked(selector: Selector) -> list[tuple[str, str]]:
    listed = (each for each in selector.expressions if each.operator is Operator.IN)
    equal = [*selector.equalities, *((each.key, value) for each in listed for value in each.values)]
    present = (each.key for each in selector.expressions if each.operator is Operator.EXISTS)
    return [*equal, *((key, "") for key in present)]
