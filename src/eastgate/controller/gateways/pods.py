"""The pods of a Gateway: an Envoy, and nothing that it does not need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from eastgate.controller.gateways.names import READINESS_PORT, selector_of
from eastgate.controller.gateways.parameters import GatewayParameters
from eastgate.records import dataclass

__all__ = ["ProxySetup", "pod_spec"]

_USER: Final = 1337
_TOKEN_FOLDER: Final = "/var/run/secrets/eastgate"  # noqa: S105 (a path)
_CA_FOLDER: Final = "/var/run/eastgate/ca"
_TOKEN_SECONDS: Final = 3600
_BEYOND_DRAIN: Final = 10  # seconds that an Envoy has to stop, after the drain


@dataclass(frozen=True, slots=True)
class ProxySetup:
    """What every proxy of a Gateway starts with.

    `bootstrap` is the configuration of its Envoy, without the id of the node, which the command line gives.
    """

    bootstrap: Mapping[str, Any]
    ca_config_map: str = "eastgate-ca"
    audience: str = "eastgate"
    readiness_path: str = "/ready"


def pod_spec(namespace: str, name: str, setup: ProxySetup, parameters: GatewayParameters) -> dict[str, Any]:
    """Return the specification of a pod of a Gateway.

    Its listeners have the ports that the Gateway says, which the sysctl lets a user other than root open.
    """
    spec: dict[str, Any] = {
        "serviceAccountName": name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": parameters.drain_seconds + _BEYOND_DRAIN,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
            "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector_of(name)},
            }
            for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ],
        "containers": [_container(namespace, name, setup, parameters)],
        "volumes": [
            {"name": "token", "projected": {"defaultMode": 0o440, "sources": [_token(setup)]}},
            {"name": "ca", "configMap": {"name": setup.ca_config_map, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ],
    }
    if parameters.priority_class is not None:
        spec["priorityClassName"] = parameters.priority_class
    return spec


def _token(setup: ProxySetup) -> dict[str, Any]:
    token = {"audience": setup.audience, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    return {"serviceAccountToken": token}


def _container(namespace: str, name: str, setup: ProxySetup, parameters: GatewayParameters) -> dict[str, Any]:
    ready = {"path": setup.readiness_path, "port": READINESS_PORT}
    container: dict[str, Any] = {
        "name": "envoy",
        "image": parameters.image,
        "imagePullPolicy": parameters.image_pull_policy,
        "command": ["envoy"],
        "args": [
            *("--config-yaml", _literal(json.dumps(setup.bootstrap, sort_keys=True, separators=(",", ":")))),
            *("--service-node", f"gateway:{namespace}/{name}/$(POD_NAME)", "--service-cluster", "eastgate"),
            *("--log-level", parameters.log_level, "--disable-hot-restart"),
        ],
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"name": "readiness", "containerPort": READINESS_PORT, "protocol": "TCP"}],
        "startupProbe": {"httpGet": ready, "periodSeconds": 1, "failureThreshold": 120},
        "readinessProbe": {"httpGet": ready, "periodSeconds": 5, "failureThreshold": 2},
        "resources": _resources(parameters),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "token", "mountPath": _TOKEN_FOLDER, "readOnly": True},
            {"name": "ca", "mountPath": _CA_FOLDER, "readOnly": True},
        ],
    }
    if parameters.drain_seconds:
        # The pod is no endpoint of the Service any more, and connections go on.
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": parameters.drain_seconds}}}
    return container


def _literal(argument: str) -> str:
    """Return an argument in which Kubernetes expands nothing."""
    return argument.replace("$", "$$")


def _resources(parameters: GatewayParameters) -> dict[str, Any]:
    limits = {"cpu": parameters.cpu_limit, "memory": parameters.memory_limit}
    known = {name: value for name, value in limits.items() if value is not None}
    requests = {"cpu": parameters.cpu_request, "memory": parameters.memory_request}
    return {"requests": requests, **({"limits": known} if known else {})}
