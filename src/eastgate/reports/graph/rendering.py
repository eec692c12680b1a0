"""The forms in which a graph is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from eastgate.basics.diagnostics.printable import json_text
from eastgate.reports.graph.dot import to_dot
from eastgate.reports.graph.mermaid import to_mermaid
from eastgate.reports.graph.model import Graph
from eastgate.reports.graph.page import to_html
from eastgate.reports.graph.svg import to_svg
from eastgate.reports.graph.text import to_csv, to_text

FORMATS = ("text", "json", "csv", "dot", "mermaid", "svg", "html")
PICTURES = frozenset({"dot", "mermaid", "svg", "html"})
"""Forms for which there may be too many nodes."""


class _Renderer(Protocol):
    def __call__(self, graph: Graph, *, why: bool) -> str: ...


def render(graph: Graph, form: str, *, why: bool = False) -> str:
    """Write a graph in one of the formats; `why`: pictures and tables name the rules that decide."""
    return _RENDERERS[form](graph, why=why)


def _json(graph: Graph, *, why: bool) -> str:  # noqa: ARG001 - it always says why
    """Write a node or an edge on each line: there are many, and that is how they are compared."""
    fields = [f"  {json_text(name)}: {_lines(value)}" for name, value in graph.to_json().items()]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _lines(items: object) -> str:
    if not isinstance(items, list):
        return json_text(items)
    return "[\n" + ",\n".join(f"    {json_text(item)}" for item in items) + "\n  ]" if items else "[]"


def _csv(graph: Graph, *, why: bool) -> str:  # noqa: ARG001 - likewise
    return to_csv(graph)


def _text(graph: Graph, *, why: bool) -> str:
    return to_text(graph, why=why) + "\n"


_RENDERERS: Mapping[str, _Renderer] = {
    "text": _text,
    "json": _json,
    "csv": _csv,
    "dot": to_dot,
    "mermaid": to_mermaid,
    "svg": to_svg,
    "html": to_html,
}
