"""The field of an object that a diagnostic is about: people who use kubectl know no lines."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.diagnostics.spans import Span
from eastgate.manifests import read_text
from eastgate.manifests.node import Node

__all__ = ["field_at"]

_LONGEST_TEXT = 1 << 20


def field_at(span: Span) -> str | None:
    """Return the path of the innermost field that a span begins in, such as `spec.rules[0].ports`; None for no field.

    The text that the span is in is read again: it is that of an object or of a list of them.
    """
    if len(span.source.text) > _LONGEST_TEXT:
        return None
    reading = read_text(span.source.name, span.source.text, positioned=lambda _api_version, _kind: True)
    for document in reading.documents:
        if document.node is not None and document.node.span.holds(span):
            return "".join(_steps(document.node, span)).removeprefix(".") or None
    return None


def _steps(node: Node, span: Span) -> Iterator[str]:
    if isinstance(node.value, dict):
        for name, value in node.value.items():
            if value.span.holds(span) or node.keys[name].span.holds(span):
                yield f".{name}"
                yield from _steps(value, span)
                return
    elif isinstance(node.value, list):
        for index, value in enumerate(node.value):
            if value.span.holds(span):
                yield f"[{index}]"
                yield from _steps(value, span)
                return
