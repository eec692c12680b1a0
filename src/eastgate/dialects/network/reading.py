"""Network policies, read: each checked against its shape, and given its meaning."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from eastgate.basics.diagnostics import Reporter
from eastgate.dialects.base import Read, reader
from eastgate.dialects.network import cluster_meaning, cluster_shapes, meaning, shapes
from eastgate.dialects.network.model import NetworkPolicy
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.nulls import drop_nulls
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

_FORMS: Final[dict[str, tuple[Record[Settings], Callable[[Document, Node, Settings], NetworkPolicy]]]] = {
    "NetworkPolicy": (shapes.NETWORK_POLICY, meaning.network_policy),
    "AdminNetworkPolicy": (cluster_shapes.ADMIN_POLICY, cluster_meaning.admin_policy),
    "BaselineAdminNetworkPolicy": (cluster_shapes.BASELINE_POLICY, cluster_meaning.baseline_policy),
    "ClusterNetworkPolicy": (cluster_shapes.CLUSTER_POLICY, cluster_meaning.cluster_policy),
}


def read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> NetworkPolicy | None:
    """Return the policy that a document describes, where nothing is wrong with it.

    In a NetworkPolicy a null is a field left out, but for labels; the definitions of the others refuse it.
    """
    if document.kind == "NetworkPolicy":
        root = drop_nulls(root, lambda mapping, _name: mapping in ("matchLabels", "labels", "annotations"))
    return _reader(document.kind)(document, root, settings, reporter)


def shape_of(kind: str) -> Record[Settings]:
    """Return the shape of a kind."""
    return _FORMS[kind][0]


@cache
def _reader(kind: str) -> Read[NetworkPolicy]:
    return reader(*_FORMS[kind])
