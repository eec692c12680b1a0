"""Sidecars in manifests of pods, and of all that makes pods."""

from __future__ import annotations

from copy import deepcopy

from eastgate.controller.injection.fields import Plain, mapping
from eastgate.controller.injection.inject import inject, is_wanted
from eastgate.controller.injection.names import INJECTION
from eastgate.controller.injection.objections import warnings_of
from eastgate.controller.injection.options import InjectionOptions

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
    """Return the pod, or the template of pods, in a manifest; None where there is none."""
    path = _path_of(manifest)
    if path is None:
        return None
    pod = manifest
    for key in path:
        pod = mapping(pod, key)
    return pod if pod else None


def inject_manifest(manifest: Plain, options: InjectionOptions) -> tuple[Plain, tuple[str, ...]]:
    """Return a manifest whose pods have sidecars, and warnings. What makes no pods, or pods without, stays as it is.

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
