"""AuthPolicy, read: checked against its shape, and given its meaning."""

from __future__ import annotations

from eastgate.diagnostics import Reporter
from eastgate.dialects.base import reader
from eastgate.dialects.kuadrant import meaning, shapes
from eastgate.dialects.kuadrant.model import Policy
from eastgate.dialects.kuadrant.nulls import without_nulls
from eastgate.manifests import Document
from eastgate.manifests.node import Node
from eastgate.settings import Settings

__all__ = ["read"]

_read = reader(shapes.AUTH_POLICY, lambda settings: settings, meaning.auth_policy)


def read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> Policy | None:
    """The policy of a document, where nothing is wrong with it."""
    return _read(document, without_nulls(root), settings, reporter)
