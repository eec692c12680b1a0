"""The objects that must exist for a Gateway: an account, a Deployment, a Service, and what goes with them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any, Final

from eastgate.controller.gateways.names import (
    APPLIED_ANNOTATION,
    is_reserved,
    labels_of,
    object_name,
    owner_reference,
    selector_of,
)
from eastgate.controller.gateways.parameters import GatewayParameters, ParameterError
from eastgate.controller.gateways.pods import ProxySetup, pod_spec
from eastgate.ir.addresses import parse_address
from eastgate.reading.kubernetes import Resource

OBJECT_RESOURCES: Final = (
    Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    Resource("", "v1", "services", "Service"),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
)
"""The kinds that are made, in the order in which they are: an account before the pods that have its identity."""

_INJECT_LABEL: Final = "eastgate.dev/inject"


class AddressError(Exception):
    """An address that a Gateway asks for and cannot have. The message is for people."""


def requested_address(gateway: Mapping[str, Any]) -> str | None:
    """Return the address that a Gateway asks for; None where any will do. Raises AddressError."""
    addresses = gateway["spec"].get("addresses") or []
    if len(addresses) > 1:
        raise AddressError("a Gateway has one address, not several")
    for address in addresses:
        type_, value = address.get("type") or "IPAddress", address.get("value") or ""
        if type_ != "IPAddress":
            raise AddressError(f"an address is an IPAddress, not a {type_}")
        if value:
            try:
                return str(parse_address(value))
            except ValueError:
                raise AddressError(f"{value} is not an IP address") from None
    return None


def infrastructure_metadata(gateway: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels and annotations that a Gateway wants on everything made for it. Raises ParameterError."""
    infrastructure = gateway["spec"].get("infrastructure") or {}
    labels, annotations = (dict(infrastructure.get(key) or {}) for key in ("labels", "annotations"))
    for key in (*labels, *annotations):
        if is_reserved(key):
            raise ParameterError(f"infrastructure must not set {key}")
    return labels, annotations


def gateway_objects(
    gateway: Mapping[str, Any], ports: Collection[int], setup: ProxySetup, parameters: GatewayParameters
) -> list[dict[str, Any]]:
    """Return the objects that must exist for a Gateway that listens on these ports, in the order of making.

    Raises ParameterError and AddressError.
    """
    namespace, name = gateway["metadata"]["namespace"], gateway["metadata"]["name"]
    labels, annotations = infrastructure_metadata(gateway)
    labels |= labels_of(name)
    objects = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "name": name, "automountServiceAccountToken": False},
        *([_service(gateway, ports, parameters)] if ports else []),
        _deployment(gateway, setup, parameters, labels, annotations),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector_of(name)}},
        },
        *([_autoscaler(name, parameters)] if parameters.max_replicas is not None else []),
    ]
    complete = []
    for entry in objects:
        own_name = entry.pop("name", object_name(name))
        metadata = {
            "name": own_name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {**annotations, APPLIED_ANNOTATION: _digest([entry, labels, annotations])},
            "ownerReferences": [owner_reference(gateway)],
        }
        complete.append({**entry, "metadata": metadata})
    return complete


def _digest(value: object) -> str:
    """Return a digest by which it shows that something is to be applied without a field that it had before."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _service(gateway: Mapping[str, Any], ports: Collection[int], parameters: GatewayParameters) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "type": parameters.service_type,
        "selector": selector_of(gateway["metadata"]["name"]),
        "ports": [
            {"name": f"port-{port}", "port": port, "targetPort": port, "protocol": "TCP"} for port in sorted(ports)
        ],
    }
    address = requested_address(gateway)
    if address is not None:
        spec["loadBalancerIP" if parameters.service_type == "LoadBalancer" else "clusterIP"] = address
    if parameters.external_traffic_policy is not None:
        spec["externalTrafficPolicy"] = parameters.external_traffic_policy
    if parameters.load_balancer_class is not None:
        spec["loadBalancerClass"] = parameters.load_balancer_class
    if parameters.load_balancer_source_ranges:
        spec["loadBalancerSourceRanges"] = list(parameters.load_balancer_source_ranges)
    return {"apiVersion": "v1", "kind": "Service", "spec": spec}


def _deployment(
    gateway: Mapping[str, Any],
    setup: ProxySetup,
    parameters: GatewayParameters,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> dict[str, Any]:
    namespace, name = gateway["metadata"]["namespace"], gateway["metadata"]["name"]
    of_pods = {**annotations, **setup.annotations}
    metadata = {
        "labels": {**labels, _INJECT_LABEL: "false"},
        **({"annotations": of_pods} if of_pods else {}),
    }
    spec: dict[str, Any] = {
        "selector": {"matchLabels": selector_of(name)},
        "minReadySeconds": 5,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {"metadata": metadata, "spec": pod_spec(namespace, name, setup, parameters)},
    }
    if parameters.max_replicas is None:
        spec["replicas"] = parameters.replicas  # otherwise the autoscaler's to say
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}


def _autoscaler(name: str, parameters: GatewayParameters) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": parameters.target_cpu_percent}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": object_name(name)},
            "minReplicas": parameters.replicas,
            "maxReplicas": parameters.max_replicas,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }
