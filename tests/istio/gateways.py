"""What Istio deploys for a Gateway: a pod, which is the proxy, and a Service."""

from __future__ import annotations

from tests.istio.tables import Manifest

GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name"
WAYPOINT_CLASS = "istio-waypoint"
_CONTROLLERS = {"istio": "istio.io/gateway-controller", WAYPOINT_CLASS: "istio.io/mesh-controller"}


def gateway_classes() -> list[Manifest]:
    """Return the classes that Istio brings."""
    return [
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GatewayClass",
            "metadata": {"name": name},
            "spec": {"controllerName": controller},
        }
        for name, controller in _CONTROLLERS.items()
    ]


def is_waypoint(gateway: Manifest) -> bool:
    return bool(gateway["spec"]["gatewayClassName"] == WAYPOINT_CLASS)


def deployed_name(gateway: Manifest) -> str:
    """Return the name of the Service and of the account: a waypoint has its own, others end with their class."""
    name = str(gateway["metadata"]["name"])
    return name if is_waypoint(gateway) else f"{name}-{gateway['spec']['gatewayClassName']}"


def gateway_pod(gateway: Manifest) -> Manifest:
    """Return the pod of a Gateway."""
    annotations = {"ambient.istio.io/redirection": "enabled"} if is_waypoint(gateway) else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{deployed_name(gateway)}-pod",
            "namespace": gateway["metadata"]["namespace"],
            "labels": _labels(gateway),
            "annotations": annotations,
        },
        "spec": {"serviceAccountName": deployed_name(gateway)},
    }


def gateway_service(gateway: Manifest) -> Manifest:
    """Return the Service of a Gateway."""
    ports = {listener["port"]: listener["name"] for listener in gateway["spec"].get("listeners") or ()}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": deployed_name(gateway),
            "namespace": gateway["metadata"]["namespace"],
            "labels": _labels(gateway),
        },
        "spec": {
            "type": "ClusterIP",
            "selector": {GATEWAY_NAME: gateway["metadata"]["name"]},
            "ports": [
                {"name": name, "port": port, "targetPort": port, "protocol": "TCP"} for port, name in ports.items()
            ],
        },
    }


def _labels(gateway: Manifest) -> dict[str, str]:
    labels = {GATEWAY_NAME: gateway["metadata"]["name"]}
    if is_waypoint(gateway):
        labels["gateway.istio.io/managed"] = "istio.io-mesh-controller"
    return labels
