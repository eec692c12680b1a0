"""Explicit nulls: a null field counts as missing, as in an API server.

There are exceptions where that would widen the policy. An API server drops a null label of a selector, a null entry,
and a null `identity` or `authorization`, which would allow every caller. Such a null stays, and the shapes refuse it.
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
