"""Injects sidecars into pods. Pure functions of their arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from eastgate.controller.injection.containers import (
    Plain,
    mapping,
    mappings,
    proxy_container,
    redirect_container,
    source_annotations,
    strings,
    volumes,
)
from eastgate.controller.injection.names import (
    INJECT,
    INJECTION,
    ORIGINAL_PROBES,
    PROXY,
    PROXY_CONTAINER,
    REDIRECT_CONTAINER,
    SIDECAR,
    SOURCE_ANNOTATIONS,
    VOLUMES,
)
from eastgate.controller.injection.objections import check_pod, warnings_of
from eastgate.controller.injection.options import InjectionOptions, InjectionRefused
from eastgate.controller.injection.redirection import redirection_of
from eastgate.envoy.config.probes import PROBE_PORT, AppProbe, ProbeKind

# Kubelet probes go to the proxy: they come in plain text from the node, and policies would deny them.


_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("httpGet", "tcpSocket", "grpc")
_MAX_PROBE_SECONDS = 3600  # between two probes


def rewrite_probes(container: Plain) -> tuple[Plain, dict[str, Any], list[AppProbe]]:
    """Return a container whose probes go to the proxy, its original probes, and the probes that the proxy makes."""
    rewritten, originals, probes = deepcopy(container), {}, []
    for field in _PROBES:
        probe = mapping(container, field)
        app = _read(container, field, probe)
        if app is None:
            continue
        kept = {key: value for key, value in probe.items() if key not in _HANDLERS}
        rewritten[field] = {"httpGet": {"path": app.path, "port": PROBE_PORT, "scheme": "HTTP"}, **deepcopy(kept)}
        originals[field] = deepcopy(probe)
        probes.append(app)
    return rewritten, originals, probes


def restore_probes(containers: list[Plain], annotation: str | None) -> list[Plain]:
    """Return containers with their original probes."""
    from eastgate.reading.strict_json import read_object

    try:
        read = read_object((annotation or "{}").encode())
    except ValueError:
        raise InjectionRefused("the annotation with the original probes is not a JSON object") from None
    by_container = {name: probes for name, probes in read.items() if isinstance(probes, dict)}
    if by_container.keys() != read.keys():
        raise InjectionRefused("the annotation with the original probes is not a mapping")
    return [
        container | {field: deepcopy(by_container[name][field]) for field in _PROBES if field in by_container[name]}
        if (name := container.get("name")) in by_container
        else container
        for container in containers
    ]


def _read(container: Plain, field: str, probe: Plain) -> AppProbe | None:
    """Return the probe of an application, or None for a probe that does not use the network of the pod."""
    handler = next((handler for handler in _HANDLERS if handler in probe), None)
    action = mapping(probe, handler) if handler is not None else {}
    if handler is None or action.get("host"):
        return None  # it does not probe this pod
    kind, target = ProbeKind.TCP, ""
    if handler == "httpGet":
        kind = ProbeKind.HTTPS if str(action.get("scheme", "HTTP")).upper() == "HTTPS" else ProbeKind.HTTP
        target = f"/{str(action.get('path') or '').removeprefix('/')}"
    elif handler == "grpc":
        kind, target = ProbeKind.GRPC, str(action.get("service") or "")
    return AppProbe(
        f"/probes/{container.get('name')}/{field}",
        kind,
        _port(container, action),
        target,
        tuple((str(header.get("name")), str(header.get("value") or "")) for header in mappings(action, "httpHeaders")),
        _seconds(probe, "periodSeconds", 10),
        _seconds(probe, "timeoutSeconds", 1),
    )


def _port(container: Plain, action: Plain) -> int:
    port = action.get("port")
    if isinstance(port, str):
        named = (
            declared.get("containerPort") for declared in mappings(container, "ports") if declared.get("name") == port
        )
        port = next(named, int(port) if port.isascii() and port.isdigit() else None)
    if not isinstance(port, int):
        raise InjectionRefused(f"a probe of container {container.get('name')} has a port that is not declared")
    return port


def _seconds(probe: Plain, field: str, otherwise: int) -> int:
    value = probe.get(field) or otherwise
    return min(value, _MAX_PROBE_SECONDS) if isinstance(value, int) and value > 0 else otherwise


# JSON patches (RFC 6902), the form in which an admission webhook returns changes.


def json_patch(before: Plain, after: Plain) -> list[Plain]:
    """Return the operations that turn `before` into `after`. Lists are replaced as a whole."""
    return list(_operations(before, after, ""))


def _operations(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Plain]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, value in after.items():
        here = f"{path}/{_escaped(key)}"
        if key not in before:
            yield {"op": "add", "path": here, "value": value}
        elif isinstance(before[key], dict) and isinstance(value, dict):
            yield from _operations(before[key], value, here)
        elif before[key] != value:
            yield {"op": "replace", "path": here, "value": value}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


_OWN = frozenset({REDIRECT_CONTAINER, PROXY_CONTAINER})
_GATEWAY = "eastgate.dev/gateway"  # label: the pod is a proxy itself


def is_wanted(pod: Plain, namespace_labels: Mapping[str, str]) -> bool:
    """Return whether a pod gets a sidecar: by its own label or annotation, or else by its namespace.

    A label counts before an annotation. A pod on the network of its node, or on Windows, never gets a sidecar.
    """
    metadata = mapping(pod, "metadata")
    labels = strings(metadata, "labels")
    if not _can_have(pod) or _GATEWAY in labels:
        return False
    own = labels.get(INJECT, strings(metadata, "annotations").get(INJECT))
    if own in ("true", "false"):
        return own == "true"
    return namespace_labels.get(INJECTION) == "enabled"


def _can_have(pod: Plain) -> bool:
    spec = mapping(pod, "spec")
    return spec.get("hostNetwork") is not True and mapping(spec, "os").get("name") != "windows"


def inject(pod: Plain, options: InjectionOptions) -> Plain | None:
    """Return a pod with its sidecar, or None if it has exactly that sidecar, or cannot have one (`hostNetwork`).

    Raises InjectionRefused for a pod whose sidecar would not enforce. Another sidecar of Eastgate is replaced.
    """
    if not _can_have(pod):
        return None
    bare = eject(pod) if strings(mapping(pod, "metadata"), "labels").get(PROXY) == SIDECAR else pod
    check_pod(bare)
    injected = _inject(bare, options)
    return None if injected == pod else injected


def _inject(pod: Plain, options: InjectionOptions) -> Plain:
    injected = deepcopy(pod)
    metadata, spec = injected.setdefault("metadata", {}), injected.setdefault("spec", {})
    annotations = {key: value for key, value in strings(metadata, "annotations").items() if key != ORIGINAL_PROBES}
    originals: dict[str, Any] = {}
    probes: list[AppProbe] = []

    def redirect_probes(container: Plain) -> Plain:
        rewritten, kept, of_app = rewrite_probes(container)
        probes.extend(of_app)
        if kept:
            originals[str(container.get("name"))] = kept
        return rewritten

    spec["containers"] = [redirect_probes(container) for container in mappings(spec, "containers")]
    first = [redirect_probes(container) for container in mappings(spec, "initContainers")]
    own = [redirect_container(options, redirection_of(annotations)), proxy_container(options, probes)]
    spec["initContainers"] = [*own, *first]
    spec["volumes"] = [*mappings(spec, "volumes"), *volumes(options)]
    metadata["labels"] = {**strings(metadata, "labels"), PROXY: SIDECAR}
    kept_probes = {ORIGINAL_PROBES: json.dumps(originals, separators=(",", ":"))} if originals else {}
    metadata["annotations"] = {**annotations, **kept_probes, **source_annotations(options)}
    return injected


def eject(pod: Plain) -> Plain:
    """Return a pod without its sidecar."""
    bare = deepcopy(pod)
    metadata, spec = bare.setdefault("metadata", {}), bare.setdefault("spec", {})
    annotations, labels = strings(metadata, "annotations"), strings(metadata, "labels")
    for key in ("initContainers", "containers"):
        others = [container for container in mappings(spec, key) if container.get("name") not in _OWN]
        _put(spec, key, restore_probes(others, annotations.get(ORIGINAL_PROBES)))
    _put(spec, "volumes", [volume for volume in mappings(spec, "volumes") if volume.get("name") not in VOLUMES])
    own = {ORIGINAL_PROBES, *SOURCE_ANNOTATIONS.values()}
    _put(metadata, "annotations", {key: value for key, value in annotations.items() if key not in own})
    _put(metadata, "labels", {key: value for key, value in labels.items() if key != PROXY})
    return bare


def _put(into: Plain, key: str, value: Any) -> None:
    if value:
        into[key] = value
    else:
        into.pop(key, None)


# Sidecars in manifests of pods and of workloads.


_TEMPLATE = ("spec", "template")
_PATHS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (),
    ("", "ReplicationController"): _TEMPLATE,
    ("", "PodTemplate"): ("template",),
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    ("argoproj.io", "Rollout"): _TEMPLATE,
}


def pod_of(manifest: Plain) -> Plain | None:
    """Return the pod or the pod template in a manifest, or None."""
    path = _path_of(manifest)
    if path is None:
        return None
    pod = manifest
    for key in path:
        pod = mapping(pod, key)
    return pod if pod else None


def inject_manifest(manifest: Plain, options: InjectionOptions) -> tuple[Plain, tuple[str, ...]]:
    """Return a manifest with sidecars in its pods, and warnings. A manifest without pods, or for pods without a
    sidecar, stays as it is.

    Raises InjectionRefused for pods whose sidecar would not enforce.
    """
    pod = pod_of(manifest)
    if pod is None:
        return manifest, ()
    warnings = warnings_of(pod)
    injected = inject(pod, options) if is_wanted(pod, {INJECTION: "enabled"}) else None
    return (manifest if injected is None else _with_pod(manifest, injected)), warnings


def _with_pod(manifest: Plain, pod: Plain) -> Plain:
    *holders, last = _path_of(manifest) or ("",)
    if not last:
        return pod
    changed = deepcopy(manifest)
    holder = changed
    for key in holders:
        holder = holder[key]
    holder[last] = pod
    return changed


def _path_of(manifest: Plain) -> tuple[str, ...] | None:
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    return _PATHS.get((group, str(manifest.get("kind"))))
