"""Reviews as an API server sends them."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]
GROUP = "gateway.networking.x-k8s.io"


def rules(entries: Any) -> Manifest:
    """Return the spec of an ALLOW policy on every pod."""
    return {"targetRefs": [{"kind": "Pod", "selector": {}}], "action": "ALLOW", "rules": entries}


def policy(spec: Any, **metadata: Any) -> Manifest:
    """Return an AuthorizationPolicy of v1alpha2."""
    named = {"name": "p", "namespace": "shop", **metadata}
    return {"apiVersion": f"{GROUP}/v1alpha2", "kind": "AuthorizationPolicy", "metadata": named, "spec": spec}


def admission_review(new: Manifest | None, old: Manifest | None = None) -> Manifest:
    """Return the review of a change from one object to another."""
    changed: Manifest = new or old or {}
    group, _, version = changed["apiVersion"].rpartition("/")
    metadata = changed.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    request = {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": changed["kind"]},
        "operation": "CREATE" if old is None else "DELETE" if new is None else "UPDATE",
        "namespace": named.get("namespace"),
        "name": named.get("name"),
        "object": new,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
