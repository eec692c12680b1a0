"""Fields in place of lines: where in an object a diagnostic points to, as the API server writes it."""

from __future__ import annotations

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.regexes import regex
from eastgate.reading.manifests import Document, Node

_PLAIN_KEY = regex(r"[A-Za-z_][A-Za-z0-9_-]*")


def root_of(document: Document) -> Node:
    """Return the content of a document with positions."""
    if document.node is not None:
        return document.node
    return document.origin if isinstance(document.origin, Node) else document.origin.node()


def field_at(root: Node, span: Span | None) -> str | None:
    """Return the path of the innermost field that a span begins in, such as `spec.rules[0].paths`; None for none."""
    if span is None:
        return None
    path, node = "", root
    while (step := _step(node, (span.line, span.column))) is not None:
        key, inner = step
        path = f"{path}{_suffix(key, is_first=not path)}"
        if inner is None:
            break
        node = inner
    return path or None


def _step(node: Node, begin: tuple[int, int]) -> tuple[str | int, Node | None] | None:
    """Return the key or index under which a position is, and the value there; no value where it is in the key."""
    for key, value in node.items():
        if key in node.keys and _holds(node.keys[key], begin):
            return key, None
        if _holds(value, begin):
            return key, value
    for index, value in enumerate(node):
        if _holds(value, begin):
            return index, value
    return None


def _holds(node: Node, begin: tuple[int, int]) -> bool:
    return (node.line, node.column) <= begin < (node.end_line, node.end_column)


def _suffix(key: str | int, *, is_first: bool) -> str:
    if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
        return key if is_first else f".{key}"
    return f"[{key}]"
