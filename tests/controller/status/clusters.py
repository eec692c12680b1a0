"""Clusters for tests of status: manifests, and reports of proxies."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

from eastgate.authority.authority import Authority
from eastgate.authority.reading import sort_documents
from eastgate.authority.sources.documents import document_of, relevant
from eastgate.basics.diagnostics import Reporter
from eastgate.controller.proxies.progress import (
    AppliedPolicy,
    ClosedPort,
    MeshReport,
    ProxyReport,
    RejectedResource,
    ReplicaReport,
    merge,
)
from eastgate.controller.status import ClusterView, StoredPolicy
from eastgate.dialects import Policy
from eastgate.settings import MeshMode, Settings

Manifest = dict[str, Any]

GROUP = "gateway.networking.x-k8s.io"
NOW = "2026-11-16T12:00:00Z"
LATER = "2026-11-16T13:00:00Z"
AMBIENT = Settings(mesh_mode=MeshMode.AMBIENT)  # a mesh in which policies may target Services
GROUPS = {
    "AuthorizationPolicy": GROUP,
    "ClusterAuthorizationPolicy": "eastgate.dev",
    "XAccessPolicy": "agentic.prototype.x-k8s.io",
    "AuthPolicy": "apim.kuadrant.io",
    "HTTPRoute": "policy.linkerd.io",
}
POLICY = "AuthorizationPolicy/shop/web"


def pod(name: str, namespace: str = "shop", **labels: str) -> Manifest:
    """Return a pod with an address, which an API server accepts only from a kubelet."""
    address = ip_address(0x0A000000 + zlib.crc32(name.encode()) % 0xFFFFFF)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app", "ports": [{"containerPort": 8080}]}]},
        "status": {"podIP": str(address)},
    }


def with_proxy(pod: Manifest, name: str = "istio-proxy", *, sidecar: bool = False) -> Manifest:
    """Return the same pod with the proxy of a mesh: a container, or an init container with `restartPolicy: Always`."""
    spec = pod["spec"]
    if sidecar:
        return {**pod, "spec": {**spec, "initContainers": [{"name": name, "restartPolicy": "Always"}]}}
    return {**pod, "spec": {**spec, "containers": [*spec["containers"], {"name": name}]}}


def service(name: str, namespace: str = "shop", **selector: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector or {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]},
    }


def to_services(*names: str) -> list[Manifest]:
    return [{"group": "", "kind": "Service", "name": name} for name in names]


def to_pods(**labels: str) -> list[Manifest]:
    return [{"group": "", "kind": "Pod", "selector": {"matchLabels": labels}}]


def policy(targets: list[Manifest], name: str = "web", **spec: Any) -> Manifest:
    level = "NETWORK" if targets[0]["kind"] == "Pod" else "APPLICATION"
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": "shop", "generation": 1, "uid": f"uid-of-{name}"},
        "spec": {"action": "ALLOW", "enforcementLevel": level, "targetRefs": targets, **spec},
    }


def authority_of(*manifests: Manifest, settings: Settings = AMBIENT) -> Authority:
    """Return the authority of a cluster with these objects."""
    documents = [document_of(relevant(manifest)) for manifest in manifests]
    return Authority(sort_documents(documents, settings, Reporter()), strict=False)


def policy_of(authority: Authority, name: str = POLICY) -> Policy:
    (found,) = [policy for policy in authority.policies if str(policy.ref) == name]
    return found


def report_of(
    enforcing: Iterable[str] = (),
    *,
    waiting: Iterable[str] = (),
    disconnected: Iterable[str] = (),
    rejecting: Mapping[str, str] | None = None,
    closing: Mapping[str, str] | None = None,
    policies: Iterable[str] = (POLICY,),
    generation: int = 1,
) -> MeshReport:
    """Return the report of one replica about proxies, by name. The name of a gateway's proxy ends with its pod."""
    policies = [name_of(policy) for policy in policies]
    applied = {name: AppliedPolicy(generation, 7) for name in policies}
    proxies = [ProxyReport(name, node_of(name), True, True, 7) for name in enforcing]
    proxies += [ProxyReport(name, node_of(name), True, False, 6) for name in waiting]
    proxies += [ProxyReport(name, node_of(name)) for name in disconnected]
    for name, message in (rejecting or {}).items():
        resource = RejectedResource("type.googleapis.com/listener", "connections/8080", message, tuple(policies))
        proxies.append(ProxyReport(name, node_of(name), True, True, 7, rejected=(resource,)))
    for name, reason in (closing or {}).items():
        port = ClosedPort(8080, reason, at_fault=tuple(policies))
        proxies.append(ProxyReport(name, node_of(name), True, True, 7, closed=(port,)))
    return merge([ReplicaReport("one", 7, applied, {proxy.proxy: proxy for proxy in proxies})])


def name_of(policy: str) -> str:
    """Return the name of a policy in reports, which includes the group."""
    kind, _, rest = policy.partition("/")
    return policy if "." in kind else f"{kind}.{GROUPS[kind]}/{rest}"


def with_uids(report: MeshReport, uids: Mapping[str, str]) -> MeshReport:
    """Return the same report from replicas that have applied the policies with these uids."""
    return merge(
        replace(
            replica,
            policies={name: replace(applied, uid=uids.get(name, "")) for name, applied in replica.policies.items()},
        )
        for replica in report.replicas
    )


def node_of(proxy: str) -> str:
    return proxy.rpartition("/")[0] if proxy.startswith("gateway:") else proxy


def view_of(authority: Authority, report: MeshReport | None = None, **more: Any) -> ClusterView:
    return ClusterView(authority, report if report is not None else MeshReport(), **more)


STORED = StoredPolicy(1)
