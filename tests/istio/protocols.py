"""Makes bytes on a port possible: if a Service declares HTTP, a sidecar has no TCP chain that could decide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.istio.cluster import Cluster
from tests.istio.questions import Destination, target_port

_HTTP = ("http", "http2", "https", "grpc", "grpc-web", "kubernetes.io/h2c", "kubernetes.io/ws", "kubernetes.io/wss")


def detect_protocols(destinations: Iterable[Destination], cluster: Cluster) -> None:
    """Make Services leave the protocol of some ports to detection, so that both have chains."""
    asked = {(pod, destination.port) for destination in destinations for pod in destination.pods}
    for service in cluster.of_kind("Service", ""):
        namespace, selector = service["metadata"]["namespace"], service["spec"].get("selector")
        for pod in cluster.selected(namespace, selector):
            for port in service["spec"].get("ports") or ():
                if _is_http(port) and (pod, target_port(port, cluster.pods[pod])) in asked:
                    port["name"] = f"port-{port['port']}"
                    port.pop("appProtocol", None)


def _is_http(port: dict[str, Any]) -> bool:
    name = str(port.get("name", ""))
    return (port.get("appProtocol") or name.partition("-")[0]) in _HTTP or name.startswith("grpc-web")
