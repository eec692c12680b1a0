"""Changes as they are stored: in the one version that counts, whatever version somebody writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from eastgate.controller.admission.changes import RequestedChange
from eastgate.controller.admission.conversion import convert_object
from eastgate.controller.admission.conversion.forms import KIND, STORED, VERSIONS


def stored_form(change: RequestedChange) -> RequestedChange:
    """Return the change of the stored object: an annotation may hold another spec than the object shows."""
    if (change.group, change.kind) != KIND or change.version == STORED or change.version not in VERSIONS:
        return change
    return replace(change, version=STORED, old=_stored(change.old, change), new=_stored(change.new, change))


def _stored(manifest: Mapping[str, Any] | None, change: RequestedChange) -> dict[str, Any] | None:
    if manifest is None:
        return None
    metadata = {"namespace": change.namespace} | dict(manifest.get("metadata") or {})
    whole = {"apiVersion": change.api_version, "kind": change.kind, **manifest, "metadata": metadata}
    return convert_object(whole, f"{change.group}/{STORED}")
