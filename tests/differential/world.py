"""The world of the differential tests: three pods with two ports each, and callers of every kind."""

from __future__ import annotations

from typing import Any

from eastgate import Settings
from tests.differential.asking import TRUST_DOMAIN, Caller

__all__ = ["CALLERS", "FEDERATED", "PODS", "PORTS", "SETTINGS", "WORLD", "Manifest", "pod"]

Manifest = dict[str, Any]

SETTINGS = Settings.from_mapping(
    {"trustDomain": TRUST_DOMAIN, "linkerdClusterNetworks": "127.10.0.0/16,10.0.0.0/8"}
).enforced()
FEDERATED = ("evil",)
PORTS = {80: "http", 443: "admin"}


def pod(name: str, namespace: str, account: str, labels: dict[str, str], **metadata: Any) -> Manifest:
    ports = [{"containerPort": number, "name": name} for number, name in PORTS.items()]
    container = {"name": "c", "ports": ports, "livenessProbe": {"httpGet": {"path": "/live", "port": 80}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, **metadata},
        "spec": {"serviceAccountName": account, "containers": [container]},
    }


def _service(name: str, selector: dict[str, str]) -> Manifest:
    spec = {"selector": selector, "ports": [{"port": port, "name": name} for port, name in PORTS.items()]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "a"}, "spec": spec}


def _namespace(name: str, labels: dict[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


WORLD: list[Manifest] = [
    _namespace("a", {"app": "web"}),
    _namespace("b", {"tier": "2"}),
    pod("p0", "a", "x", {"app": "web", "tier": "1"}),
    pod("p1", "a", "y", {"app": "db"}),
    pod("p2", "b", "x", {"app": "web", "tier": "2"}),
    _service("s0", {"app": "web"}),
    _service("s1", {"app": "db"}),
]
PODS = ["a/p0", "a/p1", "b/p2"]

_IDENTITIES = [
    "spiffe://td/ns/a/sa/x",
    "spiffe://td/ns/a/sa/y",
    "spiffe://td/ns/b/sa/x",
    "spiffe://td/ns/b/sa/y",
    "spiffe://td/ns/a/sa/nobody-declares-it",
    "spiffe://td/ns/a/sa/with.dots.x",
    "spiffe://td/ns/elsewhere/sa/x",
    "spiffe://td/ns/a/sa/x/deeper",
    "spiffe://td/workload",
    "spiffe://evil/ns/a/sa/x",
    "spiffe://evil/workload",
    None,
]
ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.10.0.1", "127.10.1.1", "127.20.0.1", *PODS]  # the bench looks up pods
CALLERS = [Caller(identity, address) for identity in _IDENTITIES for address in ADDRESSES]
