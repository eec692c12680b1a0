"""A graph in the Graphviz language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from eastgate.basics.diagnostics.printable import printable
from eastgate.reports.graph.model import Graph, GraphNode, NodeKind, ReachVerdict
from eastgate.reports.graph.picture import Picture, WayIn, shorten

_MAX_LABEL_CHARS = 60
_OPEN_COLOR = "#c62828"  # an edge from any caller, from outside the namespace
_STYLES = {
    ReachVerdict.ALLOW: 'color="#2e7d32"',
    ReachVerdict.DEPENDS: 'color="#b26a00", style=dashed',
    ReachVerdict.DENY: 'color="#c62828", style=dotted, arrowhead=tee',
}
_SHAPES = {NodeKind.GATEWAY: "house", NodeKind.BACKEND: "component", NodeKind.POD: "box"}


def to_dot(graph: Graph, *, why: bool) -> str:
    """Render a graph: each node once, in a box for its namespace."""
    picture = Picture(graph)
    lines = [
        "digraph reachability {",
        '  graph [rankdir=LR, ranksep=1.5, fontname="sans-serif"];',
        '  node [shape=box, style="rounded", fontname="sans-serif", fontsize=11];',
        '  edge [fontname="sans-serif", fontsize=9];',
        *(f"  // {_comment(note)}" for note in graph.notes),
        *_clusters(picture.nodes),
        *(line for entry in picture.entries for line in _edges(entry, picture, why=why)),
        *_ways_on(picture.entries),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _clusters(nodes: Iterable[GraphNode]) -> Iterator[str]:
    for namespace, members in groupby(nodes, key=lambda node: node.namespace):
        inside = [f"{_quote(node.id)} [shape={_SHAPES.get(node.kind, 'box')}];" for node in members]
        if namespace is None:
            yield from (f"  {line}" for line in inside)
            continue
        yield f"  subgraph {_quote(f'cluster_{namespace}')} {{"
        yield f'    label={_quote(namespace)}; color="#b0bec5"; fontcolor="#546e7a";'
        yield from (f"    {line}" for line in inside)
        yield "  }"


def _edges(entry: WayIn, picture: Picture, *, why: bool) -> Iterator[str]:
    label = shorten(entry.label, _MAX_LABEL_CHARS)
    if why:
        label = "\n".join([label, *entry.rules])
    for source in entry.sources:
        style = _STYLES[entry.verdict]
        if picture.is_open(source, entry.target):
            style = style.replace("#2e7d32", _OPEN_COLOR).replace("#b26a00", _OPEN_COLOR)
        attributes = f"{style}, label={_quote(label)}, tooltip={_quote(entry.label)}"
        yield f"  {_quote(source)} -> {_quote(entry.target)} [{attributes}];"


def _ways_on(entries: Iterable[WayIn]) -> Iterator[str]:
    ways = dict.fromkeys((entry.target, name) for entry in entries for name in entry.leads_to)
    return (f'  {_quote(start)} -> {_quote(end)} [color="#78909c", arrowhead=open];' for start, end in ways)


def _quote(text: str) -> str:
    parts = [printable(part).replace("\\", "\\\\").replace('"', '\\"') for part in text.split("\n")]
    return '"' + "\\n".join(parts) + '"'


def _comment(text: str) -> str:
    return printable(text)
