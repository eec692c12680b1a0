"""The objects that Istio deploys for a Gateway: a pod, which is the proxy, and a Service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.istio.tables import Manifest

GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name"
WAYPOINT_CLASS = "istio-waypoint"
_MESH_GROUP = "networking.istio.io"
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
    """Return the name of the Service and of the account. A waypoint has its own name; others end with their class."""
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


# Gateways of Istio's own API


def is_gateway_pod(pod: Manifest, objects: Iterable[Manifest]) -> bool:
    """Return whether a pod is the proxy of a Gateway, of either API."""
    labels = _labels_of(pod).items()
    if GATEWAY_NAME in _labels_of(pod):
        return True
    selectors = (gateway["spec"].get("selector") for gateway in _mesh_gateways(objects))
    return any(selector and selector.items() <= labels for selector in selectors)


def complete_mesh_gateways(objects: Sequence[Manifest], asked: Mapping[str, Iterable[int]]) -> list[Manifest]:
    """Return objects that tables leave to other manifests: Gateways for the pods of Istio's installers, and routes.

    A Gateway without a VirtualService answers 404 to everything. `asked` are the ports by the pods that have them.
    """
    installed = [
        _mesh_gateway(pod, asked.get(_key(pod), ()))
        for pod in objects
        if pod["kind"] == "Pod" and _is_installed(pod) and not is_gateway_pod(pod, objects)
    ]
    routed = {
        name if "/" in name else f"{service['metadata']['namespace']}/{name}"
        for service in objects
        if service["kind"] == "VirtualService"
        for name in service["spec"].get("gateways") or ()
    }
    gateways = [*_mesh_gateways(objects), *installed]
    return [*installed, *(_virtual_service(gateway) for gateway in gateways if _key(gateway) not in routed)]


def _mesh_gateways(objects: Iterable[Manifest]) -> Iterator[Manifest]:
    for one in objects:
        if one["kind"] == "Gateway" and str(one["apiVersion"]).startswith(f"{_MESH_GROUP}/"):
            yield one


def _is_installed(pod: Manifest) -> bool:
    """Return whether a pod has the label of the gateways of `istioctl install` and of the charts."""
    return _labels_of(pod).get("istio", "").endswith("gateway")


def _mesh_gateway(pod: Manifest, ports: Iterable[int]) -> Manifest:
    servers = [
        {"port": {"number": port, "name": f"http-{port}", "protocol": "HTTP"}, "hosts": ["*"]} for port in sorted(ports)
    ]
    selector = {"istio": _labels_of(pod)["istio"]}
    return _of_mesh("Gateway", pod, {"selector": selector, "servers": servers})


def _virtual_service(gateway: Manifest) -> Manifest:
    destination = {"host": "elsewhere.invalid", "port": {"number": 80}}
    spec = {
        "hosts": ["*"],
        "gateways": [gateway["metadata"]["name"]],
        "http": [{"route": [{"destination": destination}]}],
    }
    return _of_mesh("VirtualService", gateway, spec)


def _of_mesh(kind: str, like: Manifest, spec: Manifest) -> Manifest:
    metadata = {"name": like["metadata"]["name"], "namespace": like["metadata"]["namespace"]}
    return {"apiVersion": f"{_MESH_GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _key(manifest: Manifest) -> str:
    return f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"


def _labels_of(manifest: Manifest) -> Mapping[str, str]:
    return manifest["metadata"].get("labels") or {}
