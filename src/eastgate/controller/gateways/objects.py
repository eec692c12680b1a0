"""The objects that a Gateway needs: an account, a Deployment, a Service, and objects for availability."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from typing import Any, Final

from eastgate.basics.records import dataclass
from eastgate.controller.gateways.parameters import GatewayParameters, ParameterError
from eastgate.controller.gateways.pods import (
    APPLIED_ANNOTATION,
    ProxySetup,
    is_reserved,
    labels_of,
    object_name,
    owner_reference,
    pod_spec,
    selector_of,
)
from eastgate.ir.addresses import parse_address
from eastgate.reading.kubernetes import Resource

# The changes that lead from the existing objects of a Gateway to the wanted ones.
#
# An object is correct if it has every wanted field with the wanted value. Fields that other programs add stay. Changes
# of other programs to wanted fields are reverted. An annotation with a digest shows that fewer fields are wanted than
# at the last write.


ObjectKey = tuple[str, str, str]
"""The kind, the namespace and the name of an object."""

# The keys of list items, for lists with several writers. Any other list is one value.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "env": ("name",),
    "ownerReferences": ("uid",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
_PORT_KEYS: Final = (("containerPort", "protocol"), ("port", "protocol"))
_QUANTITIES: Final = ("limits", "requests")
_UNITS: Final = {
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("k", "M", "G", "T"), 1)},
    **{unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti"), 1)},
}


@dataclass(frozen=True, slots=True)
class ObjectChanges:
    """The writes for a Gateway.

    `foreign` are objects with Eastgate's names that belong to another owner: they are not written.
    """

    create: tuple[dict[str, Any], ...] = ()
    update: tuple[dict[str, Any], ...] = ()
    delete: tuple[Mapping[str, Any], ...] = ()
    foreign: tuple[ObjectKey, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.update or self.delete)


def compare_objects(
    wanted: Sequence[Mapping[str, Any]], existing: Sequence[Mapping[str, Any]], owner: str
) -> ObjectChanges:
    """Return the changes that lead from the existing objects to the wanted ones. `owner` is the UID of the Gateway.

    If the account belongs to another owner, the Deployment is neither changed nor created: its pods would get the
    rights of that account.
    """
    found = {key_of(entry): entry for entry in existing}
    keys = {key_of(entry) for entry in wanted}
    foreign = tuple(key for key in sorted(keys & found.keys()) if not is_owned(found[key], owner))
    if any(kind == "ServiceAccount" for kind, _, _ in foreign):
        wanted = [entry for entry in wanted if entry["kind"] != "Deployment"]
    create, update = [], []
    for entry in wanted:
        key = key_of(entry)
        current = found.get(key)
        if current is None:
            create.append(dict(entry))
        elif key not in foreign and not is_fulfilled(entry, current):
            metadata = {**entry["metadata"], "uid": current["metadata"]["uid"]}
            update.append({**entry, "metadata": metadata})
    delete = tuple(
        entry
        for key, entry in found.items()
        if key not in keys and is_owned(entry, owner) and not _is_being_deleted(entry)
    )
    return ObjectChanges(tuple(create), tuple(update), delete, foreign)


def key_of(obj: Mapping[str, Any]) -> ObjectKey:
    """Return the key of an object."""
    return str(obj["kind"]), str(obj["metadata"].get("namespace") or ""), str(obj["metadata"]["name"])


def is_owned(obj: Mapping[str, Any], owner: str) -> bool:
    """Return whether an object belongs to a Gateway, by its UID."""
    references = obj["metadata"].get("ownerReferences") or ()
    return any(reference.get("uid") == owner and reference.get("controller") for reference in references)


def _is_being_deleted(obj: Mapping[str, Any]) -> bool:
    return obj["metadata"].get("deletionTimestamp") is not None


def is_fulfilled(wanted: Any, current: Any, field: str = "") -> bool:
    """Return whether a value has every wanted part."""
    if isinstance(wanted, Mapping):
        return isinstance(current, Mapping) and all(
            key in current and is_fulfilled(value, current[key], field if field in _QUANTITIES else key)
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(current, list) and _is_list_fulfilled(wanted, current, field)
    if field in _QUANTITIES:
        return _amount(wanted) == _amount(current)
    return bool(wanted == current)


def _is_list_fulfilled(wanted: list[Any], current: list[Any], field: str) -> bool:
    keys = _keys(wanted, field)
    if keys is None:
        return len(wanted) == len(current) and all(map(is_fulfilled, wanted, current))
    found = {tuple(item.get(key) for key in keys): item for item in current if isinstance(item, Mapping)}
    return all(is_fulfilled(item, found.get(tuple(item.get(key) for key in keys))) for item in wanted)


def _keys(items: list[Any], field: str) -> tuple[str, ...] | None:
    if field == "ports" and items:
        return next((keys for keys in _PORT_KEYS if keys[0] in items[0]), None)
    return _KEYS.get(field)


def _amount(quantity: object) -> object:
    """Return the number of a quantity: the API server writes 1000m as 1."""
    text = str(quantity)
    unit = text.lstrip("0123456789.")
    if unit and unit not in _UNITS:
        return text
    try:
        return Decimal(text.removesuffix(unit)) * _UNITS.get(unit, Decimal(1))
    except InvalidOperation:
        return text


OBJECT_RESOURCES: Final = (
    Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    Resource("", "v1", "services", "Service"),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
)
"""The kinds of these objects in the order of their creation: an account comes before the pods with its identity."""

_INJECT_LABEL: Final = "eastgate.dev/inject"


class AddressError(Exception):
    """A Gateway requests an address that it cannot have. The message is for users."""


def requested_address(gateway: Mapping[str, Any]) -> str | None:
    """Return the address that a Gateway requests, or None for any. Raises AddressError."""
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
    """Return the labels and annotations that a Gateway requests for its objects. Raises ParameterError."""
    infrastructure = gateway["spec"].get("infrastructure") or {}
    labels, annotations = (dict(infrastructure.get(key) or {}) for key in ("labels", "annotations"))
    for key in (*labels, *annotations):
        if is_reserved(key):
            raise ParameterError(f"infrastructure must not set {key}")
    return labels, annotations


def gateway_objects(
    gateway: Mapping[str, Any], ports: Collection[int], setup: ProxySetup, parameters: GatewayParameters
) -> list[dict[str, Any]]:
    """Return the objects of a Gateway that listens on these ports, in the order of their creation.

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
    """Return a digest, which reveals that an object must be applied without a field that it had before."""
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
        spec["replicas"] = parameters.replicas  # with an autoscaler, the autoscaler sets it
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
