"""Nodes of plain data that nobody needs positions of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastgate.basics.diagnostics.spans import SourceText
from eastgate.reading.manifests import Node

_SOURCE = SourceText("converted", "")


def node_of(value: Any) -> Node:
    """Return a node of JSON data, with no position."""
    match value:
        case Mapping():
            return _node({key: node_of(entry) for key, entry in value.items()}, {key: _node(key) for key in value})
        case list():
            return _node([node_of(entry) for entry in value])
        case _:
            return _node(value)


def _node(value: Any, keys: dict[str, Node] | None = None) -> Node:
    return Node(value, _SOURCE, 1, 1, 1, 1, keys)
