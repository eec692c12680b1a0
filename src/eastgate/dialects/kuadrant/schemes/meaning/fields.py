"""Fields that many entries of a scheme have."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.model import Cache
from eastgate.dialects.kuadrant.schemes.meaning.values import value_of
from eastgate.reading.manifests.node import Node


def first_of(node: Node, *names: str) -> Node | None:
    """Return the field under whichever of its names it has."""
    return next((node[name] for name in names if name in node), None)


def text_of(node: Node | None, otherwise: str = "") -> str:
    """Return the text of a node, or what stands for it where there is none."""
    return node.text if node is not None else otherwise


def is_set(node: Node | None) -> bool:
    """Return whether a flag is true."""
    return node is not None and node.value is True


def seconds_of(node: Node, name: str, otherwise: int = 0) -> int:
    """Return a number of seconds, or what stands for it where there is none."""
    seconds = node.get(name)
    return seconds.number if seconds is not None else otherwise


def timeout_of(node: Node) -> float | None:
    """Return the `timeout` of a question, in seconds; None where there is none."""
    milliseconds = node.get("timeout")
    return milliseconds.number / 1000 if milliseconds is not None else None


def priority_of(entry: Node) -> int:
    """Return the priority of an entry."""
    priority = entry.get("priority")
    return priority.number if priority is not None else 0


def cache_of(entry: Node) -> Cache | None:
    """Return how long answers of an entry may be used again."""
    cache = entry.get("cache")
    if cache is None:
        return None
    key, ttl = value_of(cache["key"]), cache.get("ttl")
    return Cache(key, ttl.number) if ttl is not None else Cache(key)
