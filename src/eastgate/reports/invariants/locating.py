"""The field of an object at a span, for users who have no file."""

from __future__ import annotations

from eastgate.basics.diagnostics.spans import Span
from eastgate.reading.manifests import Document, Node


def field_path(document: Document, span: Span) -> str | None:
    """Return the path of the innermost value that begins at or around a span: `spec.rules[0]`."""
    if document.node is None or document.node.span.file != span.file:
        return None
    return _path(document.node, span) or None


def _path(node: Node, span: Span) -> str:
    if isinstance(node.value, dict):
        for key, child in node.items():
            if _has(child, span) or _is_at(node.key_span(key), span):
                inner = "" if _is_at(node.key_span(key), span) else _path(child, span)
                return _joined(key, inner)
    elif isinstance(node.value, list):
        for index, child in enumerate(node):
            if _has(child, span):
                return _joined(f"[{index}]", "" if _is_at(child.span, span) else _path(child, span))
    return ""


def _joined(first: str, rest: str) -> str:
    return f"{first}{rest}" if not rest or rest.startswith("[") else f"{first}.{rest}"


def _has(node: Node, span: Span) -> bool:
    return node.span.holds(span) or _is_at(node.span, span)


def _is_at(first: Span, second: Span) -> bool:
    return (first.line, first.column) == (second.line, second.column)
