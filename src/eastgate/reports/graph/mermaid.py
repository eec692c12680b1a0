"""A graph as a Mermaid flowchart, which many documentation sites render."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from eastgate.basics.diagnostics.printable import printable
from eastgate.reports.graph.model import Graph, GraphNode, NodeKind, ReachVerdict
from eastgate.reports.graph.picture import Picture, WayIn, shorten

_MAX_LABEL_CHARS = 50
_ARROWS = {ReachVerdict.ALLOW: "-->", ReachVerdict.DEPENDS: "-.->", ReachVerdict.DENY: "--x"}
_BRACKETS = {NodeKind.GATEWAY: ("{{", "}}"), NodeKind.BACKEND: ("[[", "]]"), NodeKind.POD: ("[", "]")}
_ROUND = ("(", ")")


def to_mermaid(graph: Graph, *, why: bool) -> str:
    """Render a graph: each node once, in a box for its namespace."""
    picture = Picture(graph)
    numbers = {node.id: f"n{number}" for number, node in enumerate(picture.nodes)}
    lines = [
        "flowchart LR",
        *(f"  %% {printable(note)}" for note in graph.notes),
        *_subgraphs(picture.nodes, numbers),
        *(line for entry in picture.entries for line in _links(entry, numbers, why=why)),
        *_ways_on(picture.entries, numbers),
    ]
    return "\n".join(lines) + "\n"


def _subgraphs(nodes: Iterable[GraphNode], numbers: dict[str, str]) -> Iterator[str]:
    by_namespace = groupby(nodes, key=lambda node: node.namespace)
    for index, (namespace, members) in enumerate(by_namespace):
        inside = [_node(node, numbers) for node in members]
        if namespace is None:
            yield from (f"  {line}" for line in inside)
            continue
        yield f"  subgraph namespace{index}[{_quote(namespace)}]"
        yield from (f"    {line}" for line in inside)
        yield "  end"


def _node(node: GraphNode, numbers: dict[str, str]) -> str:
    opening, closing = _BRACKETS.get(node.kind, _ROUND)
    return f"{numbers[node.id]}{opening}{_quote(node.id)}{closing}"


def _links(entry: WayIn, numbers: dict[str, str], *, why: bool) -> Iterator[str]:
    label = shorten(entry.label, _MAX_LABEL_CHARS)
    if why:
        label = " | ".join([label, *entry.rules])
    for source in entry.sources:
        yield f"  {numbers[source]} {_ARROWS[entry.verdict]}|{_quote(label)}| {numbers[entry.target]}"


def _ways_on(entries: Iterable[WayIn], numbers: dict[str, str]) -> Iterator[str]:
    ways = dict.fromkeys((entry.target, name) for entry in entries for name in entry.leads_to)
    return (f"  {numbers[start]} ==> {numbers[end]}" for start, end in ways)


def _quote(text: str) -> str:
    """Return a text between quotes. Characters with a meaning in Mermaid or HTML become entities."""
    special = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "#": "#35;", "`": "#96;", "|": "#124;"}
    return '"' + "".join(special.get(letter, letter) for letter in printable(text)) + '"'
