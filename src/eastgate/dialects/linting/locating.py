"""Find the span of a value in a document, when it is reported.

A model does not keep the position of each name in it: there are many, and hardly any is ever asked for. A document is
read again when a finding underlines a word of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from eastgate.basics.caching import SizedCache
from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.reading.manifests.document import Stretch
from eastgate.reading.manifests.json.nodes import read_json_nodes
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.text import DecodedText

_ROOTS: SizedCache[Span, Node] = SizedCache(1 << 20)  # characters


@lru_cache(maxsize=4)
def _text(source: SourceText) -> DecodedText:
    return DecodedText(source, b"", {})


def root_of(document: Span) -> Node:
    """Read a document with positions. `document` is the span of the whole document."""
    return _ROOTS.get(document, lambda: _read(document))


def _read(document: Span) -> tuple[Node, int]:
    text = _text(document.source)
    # The text of an object of a cluster is the whole of it; its span begins to be known when somebody asks
    start, end = (0, len(document.source.text)) if document.source.is_object else text.extent(document)
    if document.source.text[start : start + 1] == "{":
        nodes = read_json_nodes(text, start, end, Reporter())
        if nodes:
            return nodes[0], end - start
    return Stretch(text, False, start, end).node(), end - start


def at(document: Span | None, *path: str | int) -> Span | None:
    """Find the value at a path of keys and indices, or the nearest around it."""
    return root_of(document).nearest(*path).span if document is not None else None


def name_of(document: Span | None) -> Span | None:
    """Find the name of an object."""
    return at(document, "metadata", "name")


def annotation(document: Span | None, *names: str) -> Span | None:
    """Find the value of the first of these annotations, anywhere in the object; or else the object's name."""
    if document is None:
        return None
    span = next((node.span for key, node in _entries(root_of(document)) if key in names), None)
    return span or name_of(document)


def scalar(document: Span, within: Span | None, texts: Iterable[str | int], *, rule: Span | None = None) -> Span:
    """Find the first of these values within a span of a document, or else in its rule; where there is none, return it.

    `rule` is where the value may be written too: a rule names ports and callers in several lists.
    """
    wanted = list(texts)
    scalars = [node for node in _scalars(root_of(document)) if not isinstance(node.value, bool)]
    for span in (within, rule) if rule is not None else (within,):
        inside = _within(span) if span is not None else _anywhere
        nodes = [node for node in scalars if inside(node)]
        for text in wanted:
            for node in nodes:
                if node.value == text:
                    return node.span
    return within or document


def _anywhere(_node: Node) -> bool:
    return True


def _within(span: Span) -> Callable[[Node], bool]:
    start, end = (span.line, span.column), (span.end_line, span.end_column)
    return lambda node: start <= (node.line, node.column) and (node.end_line, node.end_column) <= end


def _scalars(node: Node) -> Iterator[Node]:
    match node.value:
        case dict() as entries:
            for value in entries.values():
                yield from _scalars(value)
        case list() as items:
            for item in items:
                yield from _scalars(item)
        case _:
            yield node


def _entries(node: Node) -> Iterator[tuple[str, Node]]:
    match node.value:
        case dict() as entries:
            for key, value in entries.items():
                yield key, value
                yield from _entries(value)
        case list() as items:
            for item in items:
                yield from _entries(item)
