"""Explicit nulls: a field that is null is a field that is left out, as an API server treats it.

Not where that would widen the policy: an API server drops a label of a selector that is null, a named entry, and a
whole `identity` or `authorization`, which lets everybody in. Such a null stays, for the shapes to refuse.
"""

from __future__ import annotations

from typing import Final

from eastgate.manifests.node import Node

__all__ = ["WIDENING", "without_nulls"]

_BY_NAME: Final = frozenset(
    {
        *("matchLabels", "labelSelectors", "patterns", "authentication", "metadata", "authorization", "defaults"),
        *("overrides", "headers", "bodyParameters", "properties", "dynamicMetadata", "filters"),
    }
)
WIDENING: Final = frozenset({"identity", "authentication", "authorization"})
_WRITTEN_OUT: Final = "value"  # any JSON


def without_nulls(node: Node, key: str = "") -> Node:
    """Return the node, with its span, without the fields that are null."""
    match node.value:
        case dict() as entries if key != _WRITTEN_OUT:
            kept = {
                name: without_nulls(entry, name)
                for name, entry in entries.items()
                if entry.value is not None or key in _BY_NAME or name in WIDENING
            }
            return _like(node, kept)
        case list() as items if key != _WRITTEN_OUT:
            return _like(node, [without_nulls(item) for item in items])
    return node


def _like(node: Node, value: dict[str, Node] | list[Node]) -> Node:
    return Node(value, node.source, node.line, node.column, node.end_line, node.end_column, node.keys)
