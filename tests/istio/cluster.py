"""Completes the manifests of a table to those of a running cluster: addresses, pods of gateways, a MeshConfig."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any

import yaml

from tests.istio.gateways import (
    GATEWAY_NAME,
    complete_mesh_gateways,
    gateway_classes,
    gateway_pod,
    gateway_service,
    is_gateway_pod,
)
from tests.istio.tables import DecisionTable, Manifest
from tests.istio.tokens import trust_our_key

_ISTIO_GROUPS = ("security.istio.io", "networking.istio.io", "telemetry.istio.io", "extensions.istio.io")
_CLUSTER_SCOPED = ("Namespace", "GatewayClass", "Node")
_WORKLOADS = ("DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "Job", "CronJob")
_INJECTION = "istio-injection"
_AMBIENT_MODE = "istio.io/dataplane-mode"


class Addresses:
    """Return an address that no other pod or Service of the run has."""

    def __init__(self) -> None:
        self._pods = IPv4Address("10.99.0.1")
        self._services = IPv4Address("10.98.0.1")

    def for_pod(self) -> str:
        self._pods += 1
        return str(self._pods)

    def for_service(self) -> str:
        self._services += 1
        return str(self._services)


@dataclass
class Cluster:
    """The cluster in a question to istiod. `pods` are all pods by namespace/name."""

    table: DecisionTable
    addresses: Addresses
    objects: list[Manifest] = field(default_factory=list)
    pods: dict[str, Manifest] = field(default_factory=dict)
    mesh: Manifest = field(default_factory=dict)

    @property
    def trust_domain(self) -> str:
        domain: str = self.mesh["trustDomain"]
        return domain

    @property
    def data_plane(self) -> str:
        return str(self.table.settings.get("istioDataPlane", "auto"))

    def of_kind(self, kind: str, group: str | None = None) -> list[Manifest]:
        """Return all objects of a kind."""
        return [one for one in self.objects if one["kind"] == kind and group in (None, group_of(one))]

    def service(self, key: str) -> Manifest | None:
        """Return a Service by namespace/name."""
        return next((one for one in self.of_kind("Service", "") if key_of(one) == key), None)

    def selected(self, namespace: str, labels: Mapping[str, str] | None) -> list[str]:
        """Return the pods of a namespace with some labels; none if there are no labels to compare."""
        return [
            key
            for key, pod in self.pods.items()
            if labels and pod["metadata"]["namespace"] == namespace and labels.items() <= labels_of(pod).items()
        ]

    def is_injected(self, pod: Manifest) -> bool:
        """Return whether the labels of a pod and its namespace give it a sidecar."""
        own = {**(pod["metadata"].get("annotations") or {}), **labels_of(pod)}.get("sidecar.istio.io/inject")
        labels = self._namespace_labels(pod)
        by_namespace = labels.get(_INJECTION)
        if "false" in (own, by_namespace) or by_namespace == "disabled":
            return False
        return own == "true" or by_namespace == "enabled" or "istio.io/rev" in {**labels, **labels_of(pod)}

    def is_ambient(self, pod: Manifest) -> bool:
        """Return whether the labels of a pod and its namespace put it behind a ztunnel."""
        own = labels_of(pod).get(_AMBIENT_MODE)
        return (own or self._namespace_labels(pod).get(_AMBIENT_MODE)) == "ambient" and not self.is_injected(pod)

    def question(self, proxies: list[Manifest], *, callers: Sequence[Manifest] = (), ambient: bool = False) -> Manifest:
        """Return the questions to istiod about the configuration of some proxies, and about the routing of callers.

        For ztunnels, istiod reads policies from the API server. For other proxies it has another source.
        """
        return {
            "validate": [_in_a_namespace(one) for one in self.table.objects if group_of(one) in _ISTIO_GROUPS],
            "kubernetes": [one for one in self.objects if ambient or group_of(one) not in _ISTIO_GROUPS],
            "istio": [one for one in self.objects if group_of(one) in _ISTIO_GROUPS],
            "mesh": self.mesh,
            "proxies": proxies,
            "callers": callers,
        }

    def proxy(self, pod: Manifest, kind: str) -> Manifest:
        """Return the proxy of a pod in a question to istiod: a sidecar, router or waypoint."""
        return {
            "name": pod["metadata"]["name"],
            "namespace": pod["metadata"]["namespace"],
            "type": kind,
            "address": address_of(pod),
            "labels": labels_of(pod),
            "serviceAccount": account_of(pod),
        }

    def is_gateway(self, pod: Manifest) -> bool:
        """Return whether a pod is the proxy of a Gateway, of either API."""
        return is_gateway_pod(pod, self.objects)

    def identity(self, key: str) -> str:
        """Return the identity of a pod."""
        pod = self.pods[key]
        return f"spiffe://{self.trust_domain}/ns/{pod['metadata']['namespace']}/sa/{account_of(pod)}"

    def _namespace_labels(self, pod: Manifest) -> Mapping[str, str]:
        name = pod["metadata"]["namespace"]
        return next((labels_of(one) for one in self.of_kind("Namespace") if one["metadata"]["name"] == name), {})


def complete(table: DecisionTable, addresses: Addresses) -> Cluster:
    """Return the cluster of a table."""
    cluster = Cluster(table, addresses)
    for written in copy.deepcopy(table.objects):
        for one in _as_pods(_in_a_namespace(written)):
            _add(one, cluster)
    cluster.mesh = _mesh_config(table, cluster)
    cluster.objects = [one for one in cluster.objects if one["kind"] != "ConfigMap"]
    _add_namespaces(cluster)
    _add_gateways(cluster)
    cluster.objects += complete_mesh_gateways(cluster.objects, _ports_asked(table))
    return cluster


def key_of(manifest: Manifest) -> str:
    return f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"


def group_of(manifest: Manifest) -> str:
    return str(manifest["apiVersion"]).rpartition("/")[0]


def labels_of(manifest: Manifest) -> Mapping[str, str]:
    return manifest["metadata"].get("labels") or {}


def account_of(pod: Manifest) -> str:
    return str(pod["spec"].get("serviceAccountName") or "default")


def address_of(pod: Manifest) -> str:
    return str(pod["status"]["podIP"])


def _in_a_namespace(manifest: Manifest) -> Manifest:
    if manifest["kind"] in _CLUSTER_SCOPED:
        return manifest
    metadata = manifest.get("metadata") or {}
    return {**manifest, "metadata": {"namespace": "default", **metadata}}


def _as_pods(manifest: Manifest) -> Iterator[Manifest]:
    """Yield an object or, for a workload, a pod of its template."""
    if manifest["kind"] not in _WORKLOADS:
        yield manifest
        return
    spec = manifest["spec"]
    template = (spec["jobTemplate"]["spec"] if manifest["kind"] == "CronJob" else spec)["template"]
    names = {"name": manifest["metadata"]["name"], "namespace": manifest["metadata"]["namespace"]}
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**(template.get("metadata") or {}), **names},
        "spec": template.get("spec") or {},
    }


def _add(manifest: Manifest, cluster: Cluster) -> None:
    match manifest["kind"], group_of(manifest):
        case "Pod", "":
            _start_pod(manifest, cluster)
        case "Service", "":
            _complete_service(manifest, cluster.addresses)
        case "RequestAuthentication", _ if not cluster.table.rejects:
            spec = manifest.get("spec") or {}
            spec["jwtRules"] = [trust_our_key(rule, cluster.table.jwks) for rule in spec.get("jwtRules") or ()]
    cluster.objects.append(manifest)


def _start_pod(pod: Manifest, cluster: Cluster) -> None:
    pod.setdefault("spec", {}).setdefault("containers", [{"name": "application", "image": "application"}])
    status = pod.setdefault("status", {})
    status.setdefault("podIP", cluster.addresses.for_pod())
    status.setdefault("podIPs", [{"ip": status["podIP"]}])
    status["phase"] = "Running"
    cluster.pods[key_of(pod)] = pod


def _complete_service(service: Manifest, addresses: Addresses) -> None:
    """Give a Service the fields that the API server sets: an address, and target ports equal to its ports."""
    spec = service.setdefault("spec", {})
    spec["ports"] = [{"protocol": "TCP", "targetPort": port["port"], **port} for port in spec.get("ports") or ()]
    spec.setdefault("clusterIP", addresses.for_service())
    spec.setdefault("clusterIPs", [spec["clusterIP"]])


def _mesh_config(table: DecisionTable, cluster: Cluster) -> Manifest:
    settings = table.settings
    root = settings.get("rootNamespace", "istio-system")
    mesh: Manifest = {}
    for one in cluster.of_kind("ConfigMap"):
        if key_of(one) == f"{root}/istio":
            mesh.update(yaml.safe_load((one.get("data") or {}).get("mesh", "")) or {})
    mesh.setdefault("rootNamespace", root)
    mesh.setdefault("trustDomain", settings.get("trustDomain", "cluster.local"))
    if "trustDomainAliases" in settings:
        mesh["trustDomainAliases"] = settings["trustDomainAliases"]
    if "pathNormalization" in settings:
        normalization = str(settings["pathNormalization"]).upper().replace("-", "_")
        mesh["pathNormalization"] = {"normalization": normalization}
    if any(case.get("forwardedFor") and case["to"].startswith("gateway:") for case in table.cases):
        config: dict[str, Any] = mesh.setdefault("defaultConfig", {})
        config.setdefault("gatewayTopology", {"numTrustedProxies": 1})
    return mesh


def _add_namespaces(cluster: Cluster) -> None:
    """Add the namespaces of objects; in an ambient mesh, put their pods behind a ztunnel."""
    names = {one["metadata"]["namespace"] for one in cluster.objects if "namespace" in one["metadata"]}
    declared = {one["metadata"]["name"] for one in cluster.of_kind("Namespace")}
    for name in sorted(names - declared):
        cluster.objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for pod in cluster.pods.values():
        if cluster.data_plane == "ambient" or cluster.is_ambient(pod):
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations["ambient.istio.io/redirection"] = "enabled"


def _ports_asked(table: DecisionTable) -> dict[str, set[int]]:
    """Return the ports of each pod that questions name."""
    asked: dict[str, set[int]] = {}
    for case in table.cases:
        kind, _, key = case["to"].partition(":")
        if kind == "pod" and "port" in case:
            asked.setdefault(key, set()).add(case["port"])
    return asked


def _add_gateways(cluster: Cluster) -> None:
    """Add the objects that Istio would deploy for each Gateway of Gateway API."""
    gateways = cluster.of_kind("Gateway", "gateway.networking.k8s.io")
    declared = {one["metadata"]["name"] for one in cluster.of_kind("GatewayClass")}
    if gateways:
        cluster.objects += [one for one in gateway_classes() if one["metadata"]["name"] not in declared]
    for gateway in gateways:
        pod = gateway_pod(gateway)
        if not cluster.selected(gateway["metadata"]["namespace"], {GATEWAY_NAME: gateway["metadata"]["name"]}):
            _start_pod(pod, cluster)
            cluster.objects.append(pod)
        service = gateway_service(gateway)
        declared_service = cluster.service(key_of(service))
        if declared_service is None:
            _complete_service(service, cluster.addresses)
            cluster.objects.append(service)
        address = (declared_service or service)["spec"]["clusterIP"]
        gateway.setdefault("status", {}).setdefault("addresses", [{"type": "IPAddress", "value": address}])
