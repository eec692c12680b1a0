"""What a reading of a cluster leaves out: kinds that may not be listed, and namespaces that were not asked for."""

from __future__ import annotations

from eastgate.cluster import Everything
from eastgate.kubernetes import Resource
from eastgate.manifests import Document
from eastgate.manifests.node import Plain
from eastgate.manifests.rendered import RenderedObject
from eastgate.unread import By, Influence, Plane, Reach, Unread, UnreadKind

__all__ = ["unlisted"]

_ALL = (Everything(None),)


def unlisted(resource: Resource, reason: str, *, elsewhere: str | None = None) -> Unread:
    """Return what stands for the objects of a kind that were not read, and why.

    With `elsewhere`, only those of other namespaces than this one were not: an answer is about what was read. Otherwise
    nobody knows what they would say.
    """
    kind = UnreadKind(resource.group, resource.kind, Influence.CHANGE, Plane.MESH, By.CLUSTER, reason)
    data: dict[str, Plain] = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "*"}}
    origin = RenderedObject(f"{resource} ({reason})", data)
    document = Document(resource.api_version, resource.kind, "*", None, None, data, origin)
    return Unread(kind, Reach(_ALL, _ALL, located=elsewhere is not None), document)
