"""A graph as one page that needs nothing else: the picture, a table, and a search through both."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template

from eastgate.basics.diagnostics.printable import printable
from eastgate.reports.graph.model import Bundle, Graph
from eastgate.reports.graph.picture import STYLE
from eastgate.reports.graph.svg import draw
from eastgate.reports.graph.text import caller_names, list_rows, list_sections, natural, ports_of, rule_name


def to_html(graph: Graph, *, why: bool) -> str:
    """Render a graph as a page. Nothing in it is loaded from elsewhere, and nothing of manifests can run."""
    has_rules = why or any(bundle.deciders for bundle in graph.bundles)
    template = Template((files(__package__) / "page.html").read_text("utf-8"))
    return template.substitute(
        style=STYLE,
        picture=draw(graph, why=why),
        notes="".join(f"<p class='note'>{_text(note)}</p>" for note in (*list_sections(graph), *graph.notes)),
        rows="\n".join(_row(bundle, graph, why=has_rules) for bundle in list_rows(graph)),
        by="<th>By</th>" if has_rules else "",
        namespaces="".join(f"<option>{_text(name)}</option>" for name in _namespaces(graph)),
    )


def _namespaces(graph: Graph) -> list[str]:
    return sorted({node.namespace for node in graph.nodes.values() if node.namespace is not None}, key=natural)


def _row(bundle: Bundle, graph: Graph, *, why: bool) -> str:
    cells = [
        _names(caller_names(bundle, graph)),
        _names(bundle.targets),
        _text(ports_of(bundle)),
        f"<span class='verdict {bundle.verdict}'>{bundle.verdict_text}</span>",
        "<br>".join(_text(way.condition) for way in bundle.ways if way.condition and bundle.condition),
    ]
    if why:
        cells.append("<br>".join(_text(rule_name(origin)) for origin in bundle.deciders) or "no policy")
    body = "".join(f"<td>{cell}</td>" for cell in cells)
    ends = f"data-from='{_text(' '.join(bundle.sources))}' data-to='{_text(' '.join(bundle.targets))}'"
    return f"<tr data-verdict='{bundle.verdict}' {ends}>{body}</tr>"


def _names(names: Iterable[str]) -> str:
    return " ".join(f"<code>{_text(name)}</code>" for name in names)


def _text(words: str) -> str:
    return escape(printable(words))
