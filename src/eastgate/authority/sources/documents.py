"""Objects of a cluster as documents, as files become documents. A place in them is an object and a field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from eastgate import dialects
from eastgate.authority.sources.sizes import LAST_APPLIED, is_measured
from eastgate.basics.diagnostics import Diagnostic
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.limits import MAX_DEPTH
from eastgate.reading.manifests.rendered import OversizedObject, RenderedObject

_BOOKKEEPING: Final = frozenset({"managedFields", "resourceVersion", "selfLink"})
_NODE_FIELDS: Final = frozenset({"volumes", "tolerations", "affinity", "topologySpreadConstraints", "imagePullSecrets"})
_PROCESS_FIELDS: Final = frozenset(
    {"env", "envFrom", "volumeMounts", "resources", "image", "imagePullPolicy", "lifecycle"}
)
_MAX_FIELD_BYTES: Final = 4096  # bytes
_MAX_FIELDS: Final = 32  # more than any policy has
_LEFT_OUT: Final = "(left out)"
_KEPT_METADATA: Final = frozenset({"name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp"})
_TOO_DEEP: Final = f"(nested more than {MAX_DEPTH} levels deep)"
_POD_STATUS: Final = frozenset({"phase", "podIP", "podIPs", "hostIP", "hostIPs"})


def ref_of(obj: Mapping[str, Any]) -> PolicyRef:
    """Return the name of an object among policies and objects of the world."""
    metadata = obj["metadata"]
    group = str(obj["apiVersion"]).rpartition("/")[0]
    return PolicyRef(obj["kind"], metadata.get("namespace"), metadata["name"], group)


def ref_of_document(document: Document) -> PolicyRef:
    """Return the name of a document among policies and objects of the world."""
    return PolicyRef(document.kind, document.home, document.name, document.group)


def relevant(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the server's own bookkeeping, and without the status of a policy.

    If the result is the same as before, Eastgate ignores the change.
    """
    kept = {key: value for key, value in obj.items() if key != "metadata"}
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _BOOKKEEPING}
    annotations = metadata.get("annotations")
    if isinstance(annotations, Mapping) and LAST_APPLIED in annotations:
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    if dialects.reads(str(obj["apiVersion"]), str(obj["kind"])):
        kept.pop("status", None)
    trim_pod = _TRIMMED.get(str(obj["kind"]))
    if trim_pod is not None:
        trim_pod(kept)
    if _is_too_deep(kept):  # an unreadable policy closes its targets, as any policy with errors does
        kept = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "spec": _TOO_DEEP}
    return {"apiVersion": kept.pop("apiVersion"), "kind": kept.pop("kind"), "metadata": metadata, **kept}


def stored(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object for controllers that write to it: without long bookkeeping, and a policy without its spec."""
    is_policy = is_measured(str(obj["apiVersion"]), str(obj["kind"]))
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    if isinstance(annotations := metadata.get("annotations"), Mapping):
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**{key: value for key, value in obj.items() if key != "spec" or not is_policy}, "metadata": metadata}


def _is_too_deep(value: object) -> bool:
    """Return whether mappings and lists are nested more deeply than manifests allow."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return True
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
            if isinstance(inner, dict | list)
        ]
    return False


def _trim_pod(pod: dict[str, Any]) -> None:
    """Leave unused fields out of a pod: they are most of it, there are many pods, and they may hold secrets."""
    spec, status = pod.get("spec"), pod.get("status")
    if isinstance(spec, Mapping):
        pod["spec"] = _trim_spec(spec)
    if isinstance(status, Mapping):
        pod["status"] = {key: value for key, value in status.items() if key in _POD_STATUS} | _readiness(status)


def _readiness(status: Mapping[str, Any]) -> dict[str, Any]:
    conditions = [
        {"type": each["type"], "status": each.get("status")}
        for each in status.get("conditions") or ()
        if isinstance(each, Mapping) and each.get("type") == "Ready"
    ]
    return {"conditions": conditions} if conditions else {}


def _trim_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    trimmed = {key: value for key, value in spec.items() if key not in _NODE_FIELDS}
    for field in ("containers", "initContainers"):
        if isinstance(containers := trimmed.get(field), list):
            trimmed[field] = [
                {key: value for key, value in container.items() if key not in _PROCESS_FIELDS}
                if isinstance(container, Mapping)
                else container
                for container in containers
            ]
    return trimmed


def _trim_template(controller: dict[str, Any]) -> None:
    """Leave unused fields out of the template of a controller."""
    spec = controller.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    if isinstance(spec, Mapping) and isinstance(template, Mapping) and isinstance(template.get("spec"), Mapping):
        controller["spec"] = {**spec, "template": {**template, "spec": _trim_spec(template["spec"])}}
    controller.pop("status", None)


_TRIMMED: Final[Mapping[str, Callable[[dict[str, Any]], None]]] = {
    "Pod": _trim_pod,
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"), _trim_template),
}


def document_of(obj: dict[str, Any], default_namespace: str = "default", beyond: Diagnostic | None = None) -> Document:
    """Return a document for an object that `relevant` returned. Documents of dialects have positions.

    `beyond` is the limit that a policy exceeds: then most of the policy is left out.
    """
    metadata = obj["metadata"]
    api_version, kind = str(obj["apiVersion"]), str(obj["kind"])
    name, data = str(ref_of(obj)), None if dialects.reads(api_version, kind) else obj
    origin = RenderedObject(name, obj) if beyond is None else OversizedObject(name, *_cut(obj, beyond), beyond)
    return Document(
        api_version, kind, metadata["name"], metadata.get("namespace"), None, data, origin, default_namespace
    )


def _cut(obj: Mapping[str, Any], beyond: Diagnostic) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a policy without its long fields, and the names of the fields of its spec that are left out.

    No reader can take the result for a policy. No policy has the added field `tooLarge`, and the text in place of an
    omitted field is invalid there.
    """
    metadata = {key: value for key, value in obj["metadata"].items() if key in _KEPT_METADATA}
    spec, left_out = obj.get("spec"), tuple[str, ...]()
    if isinstance(spec, Mapping) and len(spec) <= _MAX_FIELDS:
        left_out = tuple(key for key, value in spec.items() if len(msgspec.json.encode(value)) > _MAX_FIELD_BYTES)
        spec = {"tooLarge": beyond.message, **spec, **dict.fromkeys(left_out, _LEFT_OUT)}
    else:
        spec = beyond.message
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata, "spec": spec}, left_out
