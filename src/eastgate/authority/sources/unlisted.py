"""Documents for what a reading of a cluster leaves out: kinds that may not be listed, other namespaces."""

from __future__ import annotations

from eastgate.reading.kubernetes import Resource
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Plain
from eastgate.reading.manifests.rendered import UnlistedKind


def unlisted(resource: Resource, reason: str, *, beyond: str | None = None) -> Document:
    """Return the document that stands for the objects of a kind that were not read."""
    data: dict[str, Plain] = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "*"},
    }
    origin = UnlistedKind(str(resource), data, reason, beyond)
    return Document(resource.api_version, resource.kind, "*", None, None, data, origin)
