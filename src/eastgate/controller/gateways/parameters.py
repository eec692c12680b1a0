"""Parameters of Gateways: ConfigMaps that a GatewayClass or a Gateway refers to.

The parameters of a Gateway override those of its class. A user who may write Gateways need not have the right to run
any container, so only the class sets the image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.ir.addresses import parse_network

_QUANTITY = regex(r"[0-9]{1,12}(\.[0-9]{1,6})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")
_IMAGE = regex(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,511}")
_QUALIFIED = regex(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_MAX_REPLICAS: Final = 100


class ParameterError(Exception):
    """The parameters are not valid. The message is for users."""


@dataclass(frozen=True, slots=True)
class GatewayParameters:
    """The parameters of a Gateway. With `max_replicas` it has an autoscaler, which starts with `replicas`."""

    image: str
    image_pull_policy: str = "IfNotPresent"
    service_type: str = "LoadBalancer"
    external_traffic_policy: str | None = None
    load_balancer_class: str | None = None
    load_balancer_source_ranges: tuple[str, ...] = ()
    replicas: int = 2
    max_replicas: int | None = None
    target_cpu_percent: int = 80
    cpu_request: str = "100m"
    memory_request: str = "128Mi"
    cpu_limit: str | None = None
    memory_limit: str | None = "1Gi"
    concurrency: int = 2
    drain_seconds: int = 20
    log_level: str = "warning"
    priority_class: str | None = None


def _choice(*allowed: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return value

    return read


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not (value.isascii() and value.isdigit() and len(value) < 10 and least <= int(value) <= most):
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(value)

    return read


def _quantity(value: str) -> str:
    if not _QUANTITY.fullmatch(value):
        raise ValueError("must be a quantity such as 250m or 512Mi")
    return value


def _image(value: str) -> str:
    if not _IMAGE.fullmatch(value):
        raise ValueError("must be the name of an image")
    return value


def _qualified(value: str) -> str:
    if not _QUALIFIED.fullmatch(value):
        raise ValueError("must be a name such as example.com/internal")
    return value


def _ranges(value: str) -> tuple[str, ...]:
    ranges = tuple(part.strip() for part in value.split(",") if part.strip())
    for part in ranges:
        try:
            parse_network(part, strict=True)
        except ValueError:
            raise ValueError("must be networks such as 192.0.2.0/24, with commas between them") from None
    if not ranges:
        raise ValueError("must name a network; remove the key to allow every address")
    return ranges


_READERS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "image": ("image", _image),
    "imagePullPolicy": ("image_pull_policy", _choice("Always", "IfNotPresent", "Never")),
    "serviceType": ("service_type", _choice("LoadBalancer", "NodePort", "ClusterIP")),
    "externalTrafficPolicy": ("external_traffic_policy", _choice("Cluster", "Local")),
    "loadBalancerClass": ("load_balancer_class", _qualified),
    "loadBalancerSourceRanges": ("load_balancer_source_ranges", _ranges),
    "replicas": ("replicas", _whole(1, _MAX_REPLICAS)),
    "maxReplicas": ("max_replicas", _whole(1, _MAX_REPLICAS)),
    "targetCPUPercent": ("target_cpu_percent", _whole(1, 100)),
    "cpuRequest": ("cpu_request", _quantity),
    "memoryRequest": ("memory_request", _quantity),
    "cpuLimit": ("cpu_limit", _quantity),
    "memoryLimit": ("memory_limit", _quantity),
    "concurrency": ("concurrency", _whole(1, 128)),
    "drainSeconds": ("drain_seconds", _whole(0, 3600)),
    "logLevel": ("log_level", _choice("trace", "debug", "info", "warning", "error", "critical")),
    "priorityClass": ("priority_class", _qualified),
}
_CLASS_PARAMETERS: Final = frozenset({"image", "imagePullPolicy", "priorityClass"})


def read_parameters(
    gateway_class: Mapping[str, Any],
    gateway: Mapping[str, Any] | None,
    config_maps: Mapping[str, Mapping[str, str]],
    defaults: GatewayParameters,
) -> GatewayParameters:
    """Return the parameters of a Gateway or, without one, of a class. Raises ParameterError.

    `config_maps` has the data of ConfigMaps by `namespace/name`.
    """
    parameters = defaults
    class_key = _class_reference(gateway_class)
    if class_key is not None:
        parameters = _changed(parameters, class_key, config_maps, frozenset())
    gateway_key = _gateway_reference(gateway) if gateway is not None else None
    if gateway_key is not None:
        parameters = _changed(parameters, gateway_key, config_maps, _CLASS_PARAMETERS)
    if parameters.max_replicas is not None and parameters.max_replicas < parameters.replicas:
        raise ParameterError(f"maxReplicas is {parameters.max_replicas}, and replicas {parameters.replicas}")
    if parameters.service_type != "LoadBalancer":
        if parameters.load_balancer_class or parameters.load_balancer_source_ranges:
            raise ParameterError(f"a Service of type {parameters.service_type} has no load balancer")
        if parameters.service_type == "ClusterIP" and parameters.external_traffic_policy:
            raise ParameterError("a Service of type ClusterIP has no externalTrafficPolicy")
    return parameters


def referenced_config_maps(gateway_class: Mapping[str, Any], gateway: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the ConfigMaps with parameters, by `namespace/name`. Invalid references are left out."""
    readers = ((_class_reference, gateway_class), (_gateway_reference, gateway or {}))
    keys: list[str] = []
    for read, obj in readers:
        with suppress(ParameterError):
            keys += [key for key in [read(obj)] if key is not None]
    return tuple(keys)


def _class_reference(gateway_class: Mapping[str, Any]) -> str | None:
    reference = (gateway_class.get("spec") or {}).get("parametersRef")
    if reference is None:
        return None
    _check_kind(reference)
    if not reference.get("namespace"):
        raise ParameterError("parametersRef of a GatewayClass needs the namespace of its ConfigMap")
    return f"{reference['namespace']}/{reference.get('name')}"


def _gateway_reference(gateway: Mapping[str, Any]) -> str | None:
    infrastructure = (gateway.get("spec") or {}).get("infrastructure") or {}
    reference = infrastructure.get("parametersRef")
    if reference is None:
        return None
    _check_kind(reference)
    return f"{gateway['metadata']['namespace']}/{reference.get('name')}"


def _check_kind(reference: Mapping[str, Any]) -> None:
    group, kind = reference.get("group") or "", reference.get("kind")
    if (group, kind) != ("", "ConfigMap"):
        raise ParameterError(f"parametersRef must name a ConfigMap of the core group, not {kind} of {group or 'it'}")


def _changed(
    parameters: GatewayParameters, key: str, config_maps: Mapping[str, Mapping[str, str]], forbidden: frozenset[str]
) -> GatewayParameters:
    data = config_maps.get(key)
    if data is None:
        raise ParameterError(f"there is no ConfigMap {key} that can be read")
    changes: dict[str, Any] = {}
    for name, value in sorted(data.items()):
        if name not in _READERS:
            raise ParameterError(f"ConfigMap {key}: there is no parameter {name}")
        if name in forbidden:
            raise ParameterError(f"ConfigMap {key}: {name} is a parameter of GatewayClasses only")
        field, read = _READERS[name]
        try:
            changes[field] = read(value)
        except ValueError as error:
            raise ParameterError(f"ConfigMap {key}: {name} {error}") from None
    return replace(parameters, **changes)
