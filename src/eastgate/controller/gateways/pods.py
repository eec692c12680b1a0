"""The pods of a Gateway, which run an Envoy with minimal rights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from hashlib import sha256
from typing import Any, Final

from eastgate.basics.records import dataclass
from eastgate.cluster import GATEWAY_GROUP
from eastgate.cluster.gateways import GATEWAY_NAME_LABEL
from eastgate.cluster.proxies import GATEWAY_LABEL
from eastgate.controller.gateways.parameters import GatewayParameters

# The names, labels and ports of the objects of a Gateway.


__all__ = [
    "APPLIED_ANNOTATION",
    "CONTROLLER_NAME",
    "GATEWAY_LABEL",
    "MANAGED_BY_LABEL",
    "MANAGER",
    "READINESS_PORT",
    "RESERVED_PORTS",
    "STATUS_MANAGER",
    "is_reserved",
    "labels_of",
    "object_name",
    "owner_reference",
    "selector_of",
]

CONTROLLER_NAME: Final = "eastgate.dev/gateway-controller"
MANAGER: Final = "eastgate"
STATUS_MANAGER: Final = "eastgate-status"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
APPLIED_ANNOTATION: Final = "eastgate.dev/applied"  # a digest of the last applied object
READINESS_PORT: Final = 15021
RESERVED_PORTS: Final = frozenset({15000, 15001, 15006, READINESS_PORT})  # of the proxy in the pod itself

_MAX_LABEL_CHARS: Final = 63
_DIGEST_CHARS: Final = 10
_SUFFIX: Final = "-eastgate"
_OWN_PREFIX: Final = "eastgate.dev/"
_OWN_KEYS: Final = frozenset({MANAGED_BY_LABEL, "app.kubernetes.io/name", GATEWAY_NAME_LABEL})


def object_name(gateway: str) -> str:
    """Return the name of the Deployment, the Service and the other objects of a Gateway, valid for all of them."""
    longest = _MAX_LABEL_CHARS - len(_SUFFIX)
    fits = len(gateway) <= longest and "." not in gateway and gateway[0].isalpha()
    return (gateway if fits else _shortened(gateway, longest)) + _SUFFIX


def selector_of(gateway: str) -> dict[str, str]:
    """Return the labels that select the pods of a Gateway. They never change."""
    value = gateway if len(gateway) <= _MAX_LABEL_CHARS else _shortened(gateway, _MAX_LABEL_CHARS)
    return {GATEWAY_LABEL: value, GATEWAY_NAME_LABEL: value}


def labels_of(gateway: str) -> dict[str, str]:
    """Return the labels of all objects of a Gateway."""
    return selector_of(gateway) | {"app.kubernetes.io/name": "eastgate-gateway", MANAGED_BY_LABEL: "eastgate"}


def is_reserved(key: str) -> bool:
    """Return whether only Eastgate may set a label or an annotation."""
    return key.startswith(_OWN_PREFIX) or key in _OWN_KEYS


def owner_reference(gateway: Mapping[str, Any]) -> dict[str, Any]:
    """Return the owner reference to a Gateway, with which an object is deleted together with the Gateway."""
    return {
        "apiVersion": f"{GATEWAY_GROUP}/v1",
        "kind": "Gateway",
        "name": gateway["metadata"]["name"],
        "uid": gateway["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _shortened(name: str, longest: int) -> str:
    """Return a DNS label for a name that is too long or not valid: its beginning, and a digest."""
    digest = sha256(name.encode()).hexdigest()[:_DIGEST_CHARS]
    beginning = name.replace(".", "-")[: longest - _DIGEST_CHARS - len("g--")].rstrip("-")
    return f"g-{beginning}-{digest}"


_USER: Final = 1337
_TOKEN_SECONDS: Final = 3600
_STOP_SECONDS: Final = 10  # for an Envoy to stop after the drain
_SOURCE_ANNOTATION: Final = "eastgate.dev/source-"


@dataclass(frozen=True, slots=True)
class ProxySetup:
    """The setup that the proxies of all Gateways share.

    `bootstrap` is the configuration of Envoy without the node id, which the command line sets. `sources` are small
    files that the bootstrap refers to, by name, as JSON; they hold no secrets. The other fields are the folders and
    names that the bootstrap expects.
    """

    bootstrap: Mapping[str, Any] = field(hash=False)
    sources: Mapping[str, Any] = field(default_factory=dict, hash=False)
    token_folder: str = "/var/run/secrets/eastgate"  # noqa: S105 - a path
    ca_folder: str = "/var/run/eastgate/ca"
    admin_folder: str = "/var/run/eastgate/admin"
    sources_folder: str = "/etc/eastgate"
    ca_config_map: str = "eastgate-ca"
    audience: str = "eastgate"
    readiness_path: str = "/healthz/ready"

    @property
    def annotations(self) -> dict[str, str]:
        """Return the annotations of a pod from which its files are made."""
        return {_SOURCE_ANNOTATION + name: _json(content) for name, content in sorted(self.sources.items())}


def pod_spec(namespace: str, name: str, setup: ProxySetup, parameters: GatewayParameters) -> dict[str, Any]:
    """Return the specification of a pod of a Gateway.

    Its listeners have the ports of the Gateway. The sysctl allows a user other than root to open them.
    """
    spec: dict[str, Any] = {
        "serviceAccountName": name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": parameters.drain_seconds + _STOP_SECONDS,
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
        "volumes": _volumes(setup),
    }
    if parameters.priority_class is not None:
        spec["priorityClassName"] = parameters.priority_class
    return spec


def _volumes(setup: ProxySetup) -> list[dict[str, Any]]:
    token = {"audience": setup.audience, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    sources = [
        {"path": name, "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{annotation}']"}}
        for name, annotation in zip(sorted(setup.sources), setup.annotations, strict=True)
    ]
    return [
        {"name": "token", "projected": {"defaultMode": 0o440, "sources": [{"serviceAccountToken": token}]}},
        {"name": "ca", "configMap": {"name": setup.ca_config_map, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"name": "admin", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        *([{"name": "sources", "downwardAPI": {"items": sources}}] if sources else []),
    ]


def _mounts(setup: ProxySetup) -> list[dict[str, Any]]:
    return [
        {"name": "token", "mountPath": setup.token_folder, "readOnly": True},
        {"name": "ca", "mountPath": setup.ca_folder, "readOnly": True},
        {"name": "admin", "mountPath": setup.admin_folder},
        *([{"name": "sources", "mountPath": setup.sources_folder, "readOnly": True}] if setup.sources else []),
    ]


def _container(namespace: str, name: str, setup: ProxySetup, parameters: GatewayParameters) -> dict[str, Any]:
    ready = {"path": setup.readiness_path, "port": READINESS_PORT}
    container: dict[str, Any] = {
        "name": "envoy",
        "image": parameters.image,
        "imagePullPolicy": parameters.image_pull_policy,
        "command": ["envoy"],
        "args": [
            *("--disable-hot-restart", "--reject-unknown-dynamic-fields"),
            *("--concurrency", str(parameters.concurrency), "--log-level", parameters.log_level),
            *("--drain-time-s", "0", "--drain-strategy", "immediate"),  # connections of revoked callers end at once
            *("--service-cluster", "eastgate", "--service-node", f"gateway:{namespace}/{name}/$(POD_NAME)"),
            *("--config-yaml", _literal(_json(setup.bootstrap))),
        ],
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"name": "readiness", "containerPort": READINESS_PORT, "protocol": "TCP"}],
        "startupProbe": {"httpGet": ready, "periodSeconds": 1, "timeoutSeconds": 3, "failureThreshold": 600},
        "readinessProbe": {"httpGet": ready, "periodSeconds": 5, "timeoutSeconds": 3, "failureThreshold": 2},
        "resources": _resources(parameters),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(setup),
    }
    if parameters.drain_seconds:
        # During this time the pod is no longer an endpoint of the Service, and its connections continue.
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": parameters.drain_seconds}}}
    return container


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _literal(argument: str) -> str:
    """Return an argument that Kubernetes does not expand."""
    return argument.replace("$", "$$")


def _resources(parameters: GatewayParameters) -> dict[str, Any]:
    limits = {"cpu": parameters.cpu_limit, "memory": parameters.memory_limit}
    known = {name: value for name, value in limits.items() if value is not None}
    requests = {"cpu": parameters.cpu_request, "memory": parameters.memory_request}
    return {"requests": requests, **({"limits": known} if known else {})}
