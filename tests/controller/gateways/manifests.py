"""Manifests in the form of an API server, and the resulting statuses."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import World, interpret
from eastgate.controller.gateways.listeners import listener_standings
from eastgate.controller.gateways.routes import GatewayStanding, route_parents
from eastgate.controller.gateways.status import GatewayFacts, GatewayProgress, gateway_status
from tests.cluster.manifests import FakeManifest

NOW = "2026-01-01T00:00:00Z"
SERVICE = {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}
_GATEWAY_GROUP = "gateway.networking.k8s.io"


def documents(text: str) -> list[dict[str, Any]]:
    """Read manifests of several objects."""
    return [document for document in yaml.safe_load_all(text) if document]


def gateway(name: str = "gw", *listeners: dict[str, Any], namespace: str = "edge", **spec: Any) -> dict[str, Any]:
    """Return a Gateway of Eastgate's class in the form of the API server; by default with one HTTP listener."""
    own = list(listeners) or [{"name": "http", "port": 80, "protocol": "HTTP"}]
    return {
        "apiVersion": f"{_GATEWAY_GROUP}/v1",
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", "generation": 3},
        "spec": {"gatewayClassName": "eastgate", "listeners": own, **spec},
    }


def route(name: str = "r", *rules: dict[str, Any], kind: str = "HTTPRoute", **spec: Any) -> dict[str, Any]:
    """Return a route of the Gateway `gw`; by default with one rule to the Service `web`."""
    return {
        "apiVersion": f"{_GATEWAY_GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "edge", "generation": 2},
        "spec": {
            "parentRefs": [{"name": "gw"}],
            "rules": list(rules) or [{"backendRefs": [{"name": "web", "port": 80}]}],
            **spec,
        },
    }


def service(name: str = "web", namespace: str = "edge", **port: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, **port}]},
    }


def tls_secret(name: str, chain: bytes, key: bytes, namespace: str = "edge") -> dict[str, Any]:
    data = {"tls.crt": chain, "tls.key": key, "ca.crt": chain}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


@dataclass
class Statuses:
    """The status of every Gateway, by name, and the parents of every route, by kind and name."""

    gateways: dict[str, dict[str, Any]] = field(default_factory=dict)
    routes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    standings: dict[str, GatewayStanding] = field(default_factory=dict)

    def gateway(self, name: str = "gw") -> dict[str, str]:
        return reasons(self.gateways[name]["conditions"])

    def listener(self, name: str, gateway: str = "gw") -> dict[str, str]:
        (listener,) = (entry for entry in self.gateways[gateway]["listeners"] if entry["name"] == name)
        return reasons(listener["conditions"])

    def route(self, name: str = "r", kind: str = "HTTPRoute", parent: int = 0) -> dict[str, str]:
        return reasons(self.routes[f"{kind}/{name}"][parent]["conditions"])


def reasons(conditions: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return conditions as `status/reason`, by type."""
    return {entry["type"]: f"{entry['status']}/{entry['reason']}" for entry in conditions}


def world_of(objects: Iterable[dict[str, Any]]) -> tuple[World, list[str]]:
    """Return the world of these objects, and the errors of those that it lacks."""
    reporter = Reporter()
    declared = []
    for entry in objects:
        metadata = entry["metadata"]
        manifest = FakeManifest(entry["apiVersion"], entry["kind"], metadata["name"], entry, metadata.get("namespace"))
        interpreted = interpret(manifest, reporter)
        if interpreted is not None:
            declared.append(interpreted)
    return World.of(declared), [str(diagnostic.message) for diagnostic in reporter.diagnostics]


def statuses_of(
    objects: Sequence[dict[str, Any]], facts: GatewayFacts | None = None, gateway_class: str = "eastgate"
) -> Statuses:
    """Return the statuses of these objects, if every proxy has all resources."""
    world, _ = world_of(objects)
    facts = facts or GatewayFacts(service=SERVICE, progress=GatewayProgress(True))
    statuses = Statuses()
    standings: dict[str, GatewayStanding] = {}
    for entry in objects:
        if entry["kind"] == "Gateway" and entry["spec"]["gatewayClassName"] == gateway_class:
            name = f"{entry['metadata']['namespace']}/{entry['metadata']['name']}"
            declared = world.gateways.get(name)
            standing = GatewayStanding(declared, listener_standings(world, declared) if declared else ())
            standings[name] = standing
            statuses.gateways[entry["metadata"]["name"]] = gateway_status(entry, standing, facts, NOW)
    for entry in objects:
        if entry["kind"].endswith("Route"):
            parents = route_parents(entry, standings, world, NOW)
            statuses.routes[f"{entry['kind']}/{entry['metadata']['name']}"] = parents
    statuses.standings = standings
    return statuses
