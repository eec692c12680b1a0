"""The two containers of a sidecar, and their volumes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from eastgate.controller.injection.names import (
    ADMIN_VOLUME,
    CA_VOLUME,
    PROXY_CONTAINER,
    PROXY_UID,
    REDIRECT_CONTAINER,
    SCRATCH_VOLUME,
    SOURCE_ANNOTATIONS,
    SOURCES_VOLUME,
    TOKEN_VOLUME,
)
from eastgate.controller.injection.options import InjectionOptions, InjectionRefused
from eastgate.controller.injection.redirection import Redirection, render_rules
from eastgate.envoy.config.bootstrap import pod_bootstrap, secret_sources
from eastgate.envoy.config.probes import PROBE_PORT, READY_PATH, AppProbe

# Reads fields of pods. Fields that the API server would refuse are refused here too, never guessed.


Plain = dict[str, Any]


def mapping(of: Plain, key: str) -> Plain:
    """Return the mapping at a key, or an empty one. Raises InjectionRefused for other values."""
    value = of.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InjectionRefused(f"`{key}` is not a mapping")
    return value


def mappings(of: Plain, key: str) -> list[Plain]:
    """Return the list of mappings at a key, or an empty one. Raises InjectionRefused for other values."""
    value = of.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise InjectionRefused(f"`{key}` is not a list of mappings")
    return value


def strings(of: Plain, key: str) -> dict[str, str]:
    """Return the mapping of strings to strings at a key. Raises InjectionRefused for other values."""
    values = mapping(of, key)
    if not all(isinstance(text, str) for entry in values.items() for text in entry):
        raise InjectionRefused(f"`{key}` has a value that is not a string")
    return values


def containers_of(spec: Plain) -> list[Plain]:
    """Return all containers of a pod, including init containers."""
    return [*mappings(spec, "initContainers"), *mappings(spec, "containers"), *mappings(spec, "ephemeralContainers")]


_POD_ADDRESS = "pod.address.invalid"  # Kubernetes replaces it with the address when the container starts
# Both programs replace a table as a whole or not at all. A pod without IPv6 needs no IPv6 rules.
_REDIRECT = """\
printf %s "$RULES" | iptables-restore || printf %s "$RULES" | iptables-legacy-restore
if [ -e /proc/net/if_inet6 ]; then
  printf %s "$RULES_V6" | ip6tables-restore || printf %s "$RULES_V6" | ip6tables-legacy-restore
fi
"""
_CONFINED: Plain = {
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def redirect_container(options: InjectionOptions, redirection: Redirection) -> Plain:
    """Return the container that redirects connections, and then ends. If it fails, the pod does not start."""
    return {
        "name": REDIRECT_CONTAINER,
        "image": options.proxy_image,
        "command": ["/bin/sh", "-ec", _REDIRECT],
        "env": [
            {"name": "RULES", "value": render_rules(redirection, 4)},
            {"name": "RULES_V6", "value": render_rules(redirection, 6)},
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            **_CONFINED,
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]},
        },
        "volumeMounts": [{"name": SCRATCH_VOLUME, "mountPath": "/run"}],
    }


def proxy_container(options: InjectionOptions, probes: Sequence[AppProbe]) -> Plain:
    """Return the container of the proxy, which runs as long as the pod."""
    files = options.files
    ready = {"httpGet": {"path": READY_PATH, "port": PROBE_PORT, "scheme": "HTTP"}}
    mounts = [
        {"name": TOKEN_VOLUME, "mountPath": str(PurePosixPath(files.token).parent), "readOnly": True},
        {"name": CA_VOLUME, "mountPath": str(PurePosixPath(files.ca).parent), "readOnly": True},
        {"name": SOURCES_VOLUME, "mountPath": files.sources, "readOnly": True},
    ]
    if files.admin is not None:
        mounts.append({"name": ADMIN_VOLUME, "mountPath": str(PurePosixPath(files.admin).parent)})
    return {
        "name": PROXY_CONTAINER,
        "image": options.proxy_image,
        "restartPolicy": "Always",
        "command": ["envoy"],
        "args": [
            *("--disable-hot-restart", "--reject-unknown-dynamic-fields"),
            *("--concurrency", str(options.concurrency)),
            *("--drain-time-s", "0", "--drain-strategy", "immediate"),  # connections of revoked callers end at once
            *("--log-level", "warning", "--file-flush-interval-msec", "1000"),
            *("--service-cluster", "eastgate", "--service-node", "$(POD_NAMESPACE)/$(POD_NAME)"),
            *("--config-yaml", _bootstrap_argument(options, probes)),
        ],
        "env": [
            _of_pod("POD_NAME", "metadata.name"),
            _of_pod("POD_NAMESPACE", "metadata.namespace"),
            _of_pod("POD_IP", "status.podIP"),
        ],
        "ports": [{"name": "eastgate-probes", "containerPort": PROBE_PORT, "protocol": "TCP"}],
        "resources": {"requests": dict(options.requests), "limits": dict(options.limits)},
        "securityContext": {
            **_CONFINED,
            "runAsUser": PROXY_UID,
            "runAsGroup": PROXY_UID,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "startupProbe": {**ready, "periodSeconds": 1, "timeoutSeconds": 3, "failureThreshold": 600},
        "readinessProbe": {**ready, "periodSeconds": 15, "timeoutSeconds": 3, "failureThreshold": 4},
        "volumeMounts": mounts,
    }


def _bootstrap_argument(options: InjectionOptions, probes: Sequence[AppProbe]) -> str:
    """Return the bootstrap as an argument: Kubernetes replaces `$(NAME)`, and reads `$$` as `$`."""
    plain = pod_bootstrap(options.control_plane, options.files, address=_POD_ADDRESS, probes=probes)
    return json.dumps(plain, separators=(",", ":")).replace("$", "$$").replace(_POD_ADDRESS, "$(POD_IP)")


def _of_pod(name: str, field: str) -> Plain:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}}


def source_annotations(options: InjectionOptions) -> dict[str, str]:
    """Return the annotations that become files for the proxy. They hold paths of secrets, but no secrets."""
    sources = secret_sources(options.files)
    return {SOURCE_ANNOTATIONS[name]: json.dumps(sources[name], separators=(",", ":")) for name in sorted(sources)}


def volumes(options: InjectionOptions) -> list[Plain]:
    """Return the volumes of the two containers. No container of the application mounts any of them."""
    token = {
        "audience": options.audience,
        "expirationSeconds": options.token_seconds,
        "path": PurePosixPath(options.files.token).name,
    }
    ca = PurePosixPath(options.files.ca).name
    sources = [
        {"path": name, "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{annotation}']"}}
        for name, annotation in SOURCE_ANNOTATIONS.items()
    ]
    return [
        {"name": TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}},
        {"name": CA_VOLUME, "configMap": {"name": "eastgate-ca", "items": [{"key": "ca.crt", "path": ca}]}},
        {"name": SOURCES_VOLUME, "downwardAPI": {"items": sources}},
        {"name": ADMIN_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": SCRATCH_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    ]
