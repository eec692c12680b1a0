"""References to other objects, as Linkerd compares them: without letter case, and `core` is the empty group."""

from __future__ import annotations

from typing import TypeAlias

from eastgate.cluster import GATEWAY_GROUP, dns_label_problem
from eastgate.dialects.linkerd.model import GROUP, WORKLOAD_KINDS
from eastgate.reading.manifests.node import Node

GroupKind: TypeAlias = tuple[str, str]  # group and kind, as they are properly spelt


TARGETS_TODAY: tuple[GroupKind, ...] = (
    (GROUP, "Server"),
    ("", "Namespace"),
    (GROUP, "HTTPRoute"),
    (GATEWAY_GROUP, "HTTPRoute"),
    (GATEWAY_GROUP, "GRPCRoute"),
)
TARGETS: tuple[GroupKind, ...] = (*TARGETS_TODAY, *WORKLOAD_KINDS)  # with those that only the proposal has
IDENTITIES: tuple[GroupKind, ...] = (("", "ServiceAccount"), ("", "Namespace"))
AUTHENTICATIONS: tuple[GroupKind, ...] = (
    (GROUP, "MeshTLSAuthentication"),
    (GROUP, "NetworkAuthentication"),
    ("", "ServiceAccount"),
)
_PROPER = {
    (group.lower(), kind.lower()): (group, kind)
    for group, kind in (*TARGETS, *IDENTITIES, *AUTHENTICATIONS, ("", "Service"), (GROUP, "EgressNetwork"))
}


def canonical_kind(ref: Node) -> GroupKind:
    """Return group and kind of a reference, in their canonical spelling where that is known."""
    group = ref.get("group")
    group_text = group.text if group is not None else ""
    home = "" if group_text.lower() == "core" else group_text
    return _PROPER.get((home.lower(), ref["kind"].text.lower()), (home, ref["kind"].text))


def kind_if_readable(ref: Node) -> GroupKind | None:
    """Return `canonical_kind` of an unchecked reference; None where it has no readable group and kind."""
    group, kind = ref.get("group"), ref.get("kind")
    texts = [node.value for node in (group, kind) if node is not None]
    return canonical_kind(ref) if kind is not None and all(isinstance(text, str) for text in texts) else None


def namespace_of(document: Node, default: str) -> str | None:
    """Return the namespace of an unchecked document; None where it is not valid."""
    namespace = document["metadata"].get("namespace")
    value = namespace.value if namespace is not None else default
    return value if isinstance(value, str) and dns_label_problem(value) is None else None


def kind_text(kind: GroupKind) -> str:
    """Return the kind for a sentence, as Linkerd writes it."""
    group, name = kind
    return f"{name}.{group}" if group else name or '""'
