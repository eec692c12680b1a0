"""A pod in, the same pod with a sidecar out. Pure: it reads nothing but what it is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from eastgate.controller.injection.containers import proxy_container, redirect_container, source_annotations, volumes
from eastgate.controller.injection.fields import Plain, mapping, mappings, strings
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
from eastgate.controller.injection.objections import check_pod
from eastgate.controller.injection.options import InjectionOptions
from eastgate.controller.injection.probes import restore_probes, rewrite_probes
from eastgate.controller.injection.redirection import redirection_of
from eastgate.envoy.config.probes import AppProbe

_OWN = frozenset({REDIRECT_CONTAINER, PROXY_CONTAINER})
_GATEWAY = "eastgate.dev/gateway"  # label: the pod is a proxy itself


def is_wanted(pod: Plain, namespace_labels: Mapping[str, str]) -> bool:
    """Return whether a pod is to have a sidecar: by what it says itself, or else by what its namespace says.

    A label counts before an annotation. A pod on the network of its node never has one, nor has one of Windows.
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
    """Return a pod with its sidecar; None where it has exactly that sidecar, or cannot have any (`hostNetwork`).

    Raises InjectionRefused for a pod whose sidecar would not enforce. One with another sidecar of ours gets this one.
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

    def lead_probes(container: Plain) -> Plain:
        rewritten, kept, of_app = rewrite_probes(container)
        probes.extend(of_app)
        if kept:
            originals[str(container.get("name"))] = kept
        return rewritten

    spec["containers"] = [lead_probes(container) for container in mappings(spec, "containers")]
    first = [lead_probes(container) for container in mappings(spec, "initContainers")]
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
