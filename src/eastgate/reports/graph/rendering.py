"""The output formats of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Protocol

from eastgate.basics.diagnostics.printable import json_text, printable
from eastgate.reports.graph.dot import to_dot
from eastgate.reports.graph.mermaid import to_mermaid
from eastgate.reports.graph.model import Bundle, Graph
from eastgate.reports.graph.picture import STYLE
from eastgate.reports.graph.svg import draw, to_svg
from eastgate.reports.graph.text import (
    caller_names,
    list_rows,
    list_sections,
    natural,
    ports_of,
    rule_name,
    to_csv,
    to_text,
)

# A graph as one self-contained page: the picture, a table, and a search through both.


def to_html(graph: Graph, *, why: bool) -> str:
    """Render a graph as a page. It loads nothing, and no text of manifests can run as a script."""
    has_rules = why or any(bundle.deciders for bundle in graph.bundles)
    template = Template((files(__package__) / "page.html").read_text("utf-8"))
    return template.substitute(
        style=STYLE,
        picture=draw(graph, why=why),
        notes="".join(f"<p class='note'>{_escaped(note)}</p>" for note in (*list_sections(graph), *graph.notes)),
        rows="\n".join(_html_row(bundle, graph, why=has_rules) for bundle in list_rows(graph)),
        by="<th>By</th>" if has_rules else "",
        namespaces="".join(f"<option>{_escaped(name)}</option>" for name in _namespaces(graph)),
    )


def _namespaces(graph: Graph) -> list[str]:
    return sorted({node.namespace for node in graph.nodes.values() if node.namespace is not None}, key=natural)


def _html_row(bundle: Bundle, graph: Graph, *, why: bool) -> str:
    cells = [
        _names(caller_names(bundle, graph)),
        _names(bundle.targets),
        _escaped(ports_of(bundle)),
        f"<span class='verdict {bundle.verdict}'>{bundle.verdict_text}</span>",
        "<br>".join(_escaped(way.condition) for way in bundle.ways if way.condition and bundle.condition),
    ]
    if why:
        cells.append("<br>".join(_escaped(rule_name(origin)) for origin in bundle.deciders) or "no policy")
    body = "".join(f"<td>{cell}</td>" for cell in cells)
    ends = f"data-from='{_escaped(' '.join(bundle.sources))}' data-to='{_escaped(' '.join(bundle.targets))}'"
    return f"<tr data-verdict='{bundle.verdict}' {ends}>{body}</tr>"


def _names(names: Iterable[str]) -> str:
    return " ".join(f"<code>{_escaped(name)}</code>" for name in names)


def _escaped(words: str) -> str:
    return escape(printable(words))


FORMATS = ("text", "json", "csv", "dot", "mermaid", "svg", "html")
PICTURES = frozenset({"dot", "mermaid", "svg", "html"})
"""Formats that are unreadable with too many nodes."""


class _Renderer(Protocol):
    def __call__(self, graph: Graph, *, why: bool) -> str: ...


def render(graph: Graph, form: str, *, why: bool = False) -> str:
    """Write a graph in one of the formats; `why`: pictures and tables name the rules that decide."""
    return _RENDERERS[form](graph, why=why)


def _json(graph: Graph, *, why: bool) -> str:  # noqa: ARG001 - it always says why
    """Write each node and each edge on a line of its own, so that text tools can compare the output."""
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
