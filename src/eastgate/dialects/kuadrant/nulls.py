"""Explicit nulls: a field that is null is a field that is left out, as an API server treats it.

Not where that would widen the policy: an API server drops a label of a selector that is null, a named entry, and a
whole `identity` or `authorization`, which lets everybody in. Such a null stays, for the shapes to refuse.
"""

from __future__ import annotations

from typing import Final

from eastgate.reading.manifests.node import Node, drop_nulls

_BY_NAME: Final = frozenset(
    {
        *("matchLabels", "labelSelectors", "patterns", "authentication", "metadata", "authorization", "defaults"),
        *("overrides", "headers", "bodyParameters", "properties", "dynamicMetadata", "filters", "customClaims"),
        *("extraParams", "callbacks"),
    }
)
WIDENING: Final = frozenset({"identity", "authentication", "authorization"})
_WRITTEN_OUT: Final = frozenset({"value"})  # any JSON


_OF_BLOCKS: Final = frozenset({"strategy", "when"})  # in `defaults` and `overrides` of a policy


def without_nulls(node: Node) -> Node:
    """Return the node, with its span, without the fields that are null."""
    return drop_nulls(node, _is_refused, _WRITTEN_OUT)


def _is_refused(mapping: str, name: str) -> bool:
    return name in WIDENING or (mapping in _BY_NAME and name not in _OF_BLOCKS)
