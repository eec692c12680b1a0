"""The world of the agents: a gateway, MCP servers in the cluster and outside, and policies to choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

Manifest = dict[str, Any]
NAMESPACE = "prod"
GROUP = "agentic.prototype.x-k8s.io"
GATEWAY = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}
INSIDE = ("maths", "notes")


def backend(name: str) -> Manifest:
    return {"group": GROUP, "kind": "XBackend", "name": name}


def world(outside: Mapping[str, int]) -> list[Manifest]:
    """Return all objects except policies. `outside`: servers with a hostname, and their ports."""
    gateway = _object("gateway.networking.k8s.io/v1", "Gateway", "gw")
    gateway["spec"] = {"gatewayClassName": "e", "listeners": [{"name": "http", "port": 8080, "protocol": "HTTP"}]}
    manifests = [gateway]
    for name in INSIDE:
        manifests += [*_workload(name, 80), _backend(name, {"serviceName": name, "port": 80}), _route(name)]
    for name, port in outside.items():
        manifests += [_backend(name, {"hostname": "localhost", "port": port}), _route(name)]
    return [*manifests, *_workload("checker", 9000, 8000)]


def _object(version: str, kind: str, name: str) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}}


def _workload(name: str, *ports: int) -> list[Manifest]:
    pod, service = _object("v1", "Pod", name), _object("v1", "Service", name)
    pod["metadata"]["labels"] = {"app": name}
    containers = [{"name": "c", "image": "i", "ports": [{"containerPort": port} for port in ports]}]
    pod["spec"] = {"serviceAccountName": name, "containers": containers}
    service["spec"] = {"selector": {"app": name}, "ports": [{"name": f"p{port}", "port": port} for port in ports]}
    return [pod, service]


def _backend(name: str, server: Manifest) -> Manifest:
    return _object(f"{GROUP}/v0alpha0", "XBackend", name) | {"spec": {"mcp": {**server, "path": "/mcp"}}}


def _route(name: str) -> Manifest:
    rules = [{"backendRefs": [backend(name)]}]
    spec = {"parentRefs": [{"name": "gw"}], "hostnames": [f"{name}.example"], "rules": rules}
    return _object("gateway.networking.k8s.io/v1", "HTTPRoute", name) | {"spec": spec}


# Policies


def source(account: str) -> Manifest:
    return {"type": "ServiceAccount", "serviceAccount": {"name": account}}


def policy(name: str, target: Manifest, rules: Sequence[Manifest]) -> Manifest:
    named = [{"name": f"rule-{index}", **rule} for index, rule in enumerate(rules)]
    spec = {"targetRefs": [target], "rules": named}
    return _object(f"{GROUP}/v0alpha0", "XAccessPolicy", name) | {"spec": spec}


def tools(name: str, target: Manifest, allowed: Mapping[str, Sequence[str]]) -> Manifest:
    """Return a policy with the tools that each account may call."""
    rules = [
        {"source": source(account), "authorization": {"type": "InlineTools", "tools": list(names)}}
        for account, names in allowed.items()
    ]
    return policy(name, target, rules)


def denied(name: str, target: Manifest, forbidden: Mapping[str, Sequence[str]]) -> Manifest:
    """Return a policy with the tools that each account may not call."""
    manifest = tools(name, target, forbidden)
    manifest["spec"]["action"] = "Deny"
    return manifest


def asks(name: str, target: Manifest, account: str, protocol: str, *, body: bool = False) -> Manifest:
    """Return a policy that asks the external authorizer about the requests of an account."""
    port = 9000 if protocol == "GRPC" else 8000
    asked: Manifest = {"protocol": protocol, "backendRef": {"name": "checker", "port": port}}
    asked |= {"grpc": {}} if protocol == "GRPC" else {"http": {"path": "/check"}}
    asked |= {"forwardBody": {"maxSize": 8192}} if body else {}
    rule = {"source": source(account), "authorization": {"type": "ExternalAuth", "externalAuth": asked}}
    return policy(name, target, [rule])


def text(manifests: Sequence[Manifest]) -> str:
    return yaml.safe_dump_all(manifests)
