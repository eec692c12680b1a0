"""Checks whether a pod can have a sidecar: errors make the sidecar ineffective, and warnings weaken it."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.controller.injection.containers import Plain, containers_of, mapping, mappings, strings
from eastgate.controller.injection.names import (
    AUDIENCE,
    EXCLUDED_INBOUND_PORTS,
    EXCLUDED_OUTBOUND_PORTS,
    EXCLUDED_OUTBOUND_RANGES,
    OWN_PORTS,
    PROXY_CONTAINER,
    PROXY_UID,
    REDIRECT_CONTAINER,
    VOLUMES,
)
from eastgate.controller.injection.options import InjectionRefused
from eastgate.controller.injection.redirection import redirection_of

_OWN = frozenset({REDIRECT_CONTAINER, PROXY_CONTAINER})
_BYPASS_CAPABILITIES = frozenset({"NET_ADMIN", "SYS_ADMIN", "ALL"})  # these can undo the redirection


def check_pod(pod: Plain) -> None:
    """Raise InjectionRefused for a pod without a sidecar whose sidecar would not enforce."""
    spec = mapping(pod, "spec")
    redirection_of(strings(mapping(pod, "metadata"), "annotations"))
    if mapping(spec, "securityContext").get("runAsUser") == PROXY_UID:
        raise InjectionRefused(_bypass("the pod"))
    for volume in mappings(spec, "volumes"):
        if volume.get("name") in VOLUMES:
            raise InjectionRefused(f"the volume {volume.get('name')} has a name that is reserved for the sidecar")
        if any(_is_for_the_control_plane(source) for source in mappings(mapping(volume, "projected"), "sources")):
            raise InjectionRefused(
                f"the volume {volume.get('name')} has a token for the control plane: "
                "a process that reads it can pose as the sidecar, and report that policies are in force"
            )
    for container in containers_of(spec):
        _check_container(container)


def _is_for_the_control_plane(source: Plain) -> bool:
    return mapping(source, "serviceAccountToken").get("audience") == AUDIENCE


def _check_container(container: Plain) -> None:
    name = f"container {container.get('name')}"
    if container.get("name") in _OWN:
        raise InjectionRefused(f"{name} has a name that is reserved for the sidecar")
    if mapping(container, "securityContext").get("runAsUser") == PROXY_UID:
        raise InjectionRefused(_bypass(name))
    for mount in (*mappings(container, "volumeMounts"), *mappings(container, "volumeDevices")):
        if mount.get("name") in VOLUMES:
            raise InjectionRefused(f"{name} mounts {mount.get('name')}, which only the sidecar may mount")
    for port in mappings(container, "ports"):
        if port.get("containerPort") in OWN_PORTS and port.get("protocol", "TCP") == "TCP":
            raise InjectionRefused(
                f"{name} has the port {port.get('containerPort')}, which is reserved for the sidecar"
            )


def _bypass(what: str) -> str:
    return f"{what} runs as user {PROXY_UID}, whose connections are not redirected: use another user"


def warnings_of(pod: Plain) -> tuple[str, ...]:
    """Return warnings for the creator of a pod: settings by which connections bypass its sidecar."""
    return tuple(_warnings(pod))


def _warnings(pod: Plain) -> Iterator[str]:
    spec, annotations = mapping(pod, "spec"), strings(mapping(pod, "metadata"), "annotations")
    for key in (EXCLUDED_INBOUND_PORTS, EXCLUDED_OUTBOUND_PORTS, EXCLUDED_OUTBOUND_RANGES):
        if annotations.get(key, "").strip():
            yield f"{key}: no policy is enforced on {annotations[key]}"
    if spec.get("hostNetwork") is True:
        yield "hostNetwork: a pod on the network of its node has no sidecar, and no policy is enforced for it"
    for shared in ("shareProcessNamespace", "hostPID"):
        if spec.get(shared) is True:
            yield f"{shared}: containers that run as root can read the sidecar's keys"
    for container in containers_of(spec):
        if container.get("name") not in _OWN:
            yield from _container_warnings(container)


def _container_warnings(container: Plain) -> Iterator[str]:
    name, context = container.get("name"), mapping(container, "securityContext")
    added = mapping(context, "capabilities").get("add") or ()
    for capability in sorted(_BYPASS_CAPABILITIES & {str(word).upper().removeprefix("CAP_") for word in added}):
        yield f"container {name} has {capability}, with which it can undo the redirection to the sidecar"
    if context.get("privileged") is True:
        yield f"container {name} is privileged, and can undo the redirection to the sidecar"
    for hook, handler in mapping(container, "lifecycle").items():
        if isinstance(handler, dict) and ("httpGet" in handler or "tcpSocket" in handler):
            yield f"container {name}: {hook} comes in plain text from the node, and policies apply to it; use exec"
