"""AccessPolicies and Backends, read: each checked against its shape, and given its meaning."""

from __future__ import annotations

from eastgate.basics.diagnostics import Reporter
from eastgate.dialects.accesspolicy import meaning, shapes
from eastgate.dialects.accesspolicy.model import NETWORKING_GROUP, PROTOTYPE_GROUP, Policy
from eastgate.dialects.base import reader
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings

BACKEND_SHAPE = shapes.BACKEND
POLICY_SHAPES = {
    (PROTOTYPE_GROUP, "v0alpha0"): shapes.V0ALPHA0,
    (NETWORKING_GROUP, "v0alpha0"): shapes.V0ALPHA0_CEL,
    (NETWORKING_GROUP, "v1alpha1"): shapes.V1ALPHA1,
}
_MEANINGS = {"v0alpha0": meaning.v0alpha0, "v1alpha1": meaning.v1alpha1}
_READERS = {(group, version): reader(shape, _MEANINGS[version]) for (group, version), shape in POLICY_SHAPES.items()}

read_backend = reader(BACKEND_SHAPE, meaning.backend)


def read_policy(document: Document, root: Node, settings: Settings, reporter: Reporter) -> Policy | None:
    """Return the policy that a document describes, where nothing is wrong with it."""
    return _READERS[document.group, document.version](document, root, settings, reporter)
