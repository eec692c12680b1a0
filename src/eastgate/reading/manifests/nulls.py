"""Explicit nulls, where a field that is null is a field that is left out, as an API server treats it."""

from __future__ import annotations

from collections.abc import Callable

from eastgate.reading.manifests.node import Node


def drop_nulls(node: Node, keeps: Callable[[str, str], bool], opaque: frozenset[str] = frozenset()) -> Node:
    """Return the node, with its span, without fields that are null; entries of lists stay.

    `keeps` is asked of each null by the key of its mapping and its own; what is under `opaque` keys is left alone.
    """

    def within(node: Node, key: str) -> Node:
        match node.value:
            case dict() as entries if key not in opaque:
                return _like(
                    node,
                    {
                        name: within(entry, name)
                        for name, entry in entries.items()
                        if entry.value is not None or keeps(key, name)
                    },
                )
            case list() as items if key not in opaque:
                return _like(node, [within(item, "") for item in items])
        return node

    return within(node, "")


def _like(node: Node, value: dict[str, Node] | list[Node]) -> Node:
    return Node(value, node.source, node.line, node.column, node.end_line, node.end_column, node.keys)
