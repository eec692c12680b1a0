"""The content of pictures of a graph: the entries of destinations, and their callers.

A workload is one node, whether it calls or is called. An account is drawn as the workloads that run as it. If nearly
all callers are allowed something, they are one node ("anyone but sandbox") instead of an edge from each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from xml.sax.saxutils import escape, quoteattr

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.ir import Origin
from eastgate.reports.graph.model import Bundle, Graph, GraphNode, NodeKind, ReachVerdict
from eastgate.reports.graph.text import name_ports, natural, rule_name, sources_of

# Shapes and texts of pictures. All text from manifests is escaped here.


STYLE = """
svg { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.page { fill: #ffffff; }
.zone { fill: #f4f6f8; stroke: #cfd8dc; }
.zone-title { fill: #546e7a; font-weight: 600; letter-spacing: .03em; }
.chip rect, .card > rect { fill: #ffffff; stroke: #90a4ae; }
.chip text, .title { fill: #1c2b33; }
.title { font-weight: 600; }
.outside rect { stroke: #c62828; }
.kind, .legend, .rule { fill: #78909c; }
.row text { fill: #263238; }
.row .rule, .nobody { fill: #78909c; font-style: italic; }
.edge { fill: none; stroke-width: 1.4; opacity: .75; }
.edge:hover { stroke-width: 3; opacity: 1; }
.allow { stroke: #2e7d32; }
.depends { stroke: #b26a00; stroke-dasharray: 5 4; }
.deny { stroke: #c62828; stroke-dasharray: 1 4; }
.edge[data-open] { stroke: #c62828; }
.card > rect.bare { stroke: #c62828; stroke-dasharray: 4 3; }
.mark-allow { fill: #2e7d32; }
.mark-depends { fill: #ffffff; stroke: #b26a00; stroke-width: 1.6; stroke-dasharray: 2 1.5; }
.mark-deny { fill: #c62828; }
.stripe { fill: #f4f6f8; }
.line { stroke: #cfd8dc; }
.cell text { text-anchor: middle; font-size: 9px; }
.cell-allow rect { fill: #2e7d32; }
.cell-allow text { fill: #ffffff; }
.cell-deny rect { fill: #ffcdd2; }
.cell-deny text { fill: #b71c1c; }
.cell-depends rect { fill: #fff3e0; stroke: #b26a00; stroke-width: 1.4; stroke-dasharray: 3 2; }
.cell-depends text { fill: #7a4700; }
g[data-open] rect { stroke: #c62828; stroke-width: 2.6; }
.on { stroke: #78909c; stroke-width: 2.2; }
""".strip()


@dataclass(frozen=True, slots=True)
class Drawing:
    """Elements, and the size that they need."""

    width: float
    height: float
    elements: list[str]


def box(x: float, y: float, width: float, height: float) -> str:
    return f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'


def text(x: float, y: float, words: str, css: str = "", more: str = "") -> str:
    chosen = f' class="{css}"' if css else ""
    return f'<text{chosen} x="{x:g}" y="{y:g}"{more}>{escape(printable(words))}</text>'


def tooltip(*lines: str) -> str:
    return f"<title>{'&#10;'.join(escape(printable(line)) for line in lines)}</title>"


def attribute(words: str) -> str:
    return quoteattr(printable(words))


_MAX_PODS_PER_ACCOUNT = 6  # pods that are drawn in the place of their account
_ANYWHERE = frozenset({NodeKind.ANYONE, NodeKind.OUTSIDE, NodeKind.ANONYMOUS})
_UNPLACED = frozenset({NodeKind.OTHER_ACCOUNTS, NodeKind.FUTURE_PODS})


@dataclass(frozen=True, slots=True)
class WayIn:
    """One way into a destination: the ports, the condition, and its callers."""

    target: str
    sources: tuple[str, ...]
    ports: str
    verdict: ReachVerdict
    condition: str | None
    deciders: tuple[Origin, ...]
    leads_to: tuple[str, ...]
    is_group: bool = False
    is_doubtful: bool = False

    @property
    def rules(self) -> list[str]:
        """Return the rules that decide, each with its line."""
        return [rule_name(origin) for origin in self.deciders]

    @property
    def label(self) -> str:
        """Return the ports and the condition. For groups, the condition is enough."""
        if self.is_group and self.condition is not None:
            return self.condition
        ports = f"{self.ports} (an unread policy could deny it)" if self.is_doubtful else self.ports
        return ports if self.condition is None else f"{ports}: {self.condition}"


class Picture:
    """The nodes and entries of a picture. Callers without edges are left out, and so are groups of such callers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._crowds: dict[str, GraphNode] = {}
        self._pods: dict[str, list[str]] = defaultdict(list)
        for node in graph.nodes.values():
            if node.kind is NodeKind.POD and node.account is not None:
                self._pods[node.account].append(node.id)
        bundles = [bundle for bundle in graph.bundles if not bundle.is_open_egress]
        self.entries = [entry for bundle in bundles for entry in self._entries(bundle)]

    def _entries(self, bundle: Bundle) -> Iterator[WayIn]:
        sources = tuple(dict.fromkeys(drawn for name in sources_of(bundle, self.graph) for drawn in self._drawn(name)))
        ports = name_ports(bundle) + (f" of service:{bundle.service}" if bundle.service else "")
        for target in bundle.targets:
            yield WayIn(
                target,
                sources,
                ports,
                bundle.verdict,
                bundle.condition,
                bundle.deciders,
                bundle.leads_to,
                is_group=bundle.pairs is not None,
                is_doubtful=bool(bundle.doubts),
            )

    def _drawn(self, name: str) -> list[str]:
        """Return the nodes that a caller is drawn as: for an account, the workloads that run as it."""
        if name not in self.graph.nodes:
            self._crowds[name] = GraphNode(name, NodeKind.ANYONE)
        pods = self._pods.get(name, [])
        return pods if 0 < len(pods) <= _MAX_PODS_PER_ACCOUNT else [name]

    def node(self, name: str) -> GraphNode:
        """Return a node by its id."""
        return self.graph.nodes.get(name) or self._crowds[name]

    def is_open(self, source: str, target: str) -> bool:
        """Return whether an edge comes from any caller, and from outside the namespace of its target."""
        node = self.node(source)
        if node.kind in _ANYWHERE:
            return True
        return node.kind in _UNPLACED and node.namespace is None and self.node(target).namespace is not None

    def names(self, name: str) -> str:
        """Return the ids of a node in tables: its own, and that of its account."""
        account = self.node(name).account
        return f"{name} {account}" if account is not None else name

    @cached_property
    def behind(self) -> frozenset[str]:
        """Return the backends behind gateways. Callers reach them through the gateway."""
        led_to = {name for entry in self.entries for name in entry.leads_to}
        nodes = self.graph.nodes
        return frozenset(name for name in led_to if name in nodes and nodes[name].kind is NodeKind.BACKEND)

    @cached_property
    def sources(self) -> list[GraphNode]:
        """Return the callers with edges: those of namespaces first, then from wider to widest."""
        used = dict.fromkeys(name for entry in self.entries for name in entry.sources)
        return sorted(
            map(self.node, used),
            key=lambda node: (node.id in self._crowds, node.namespace is None, *_in_order(node)),
        )

    @cached_property
    def targets(self) -> list[GraphNode]:
        """Return the destinations, including those without callers."""
        destinations = {NodeKind.POD, NodeKind.GATEWAY, NodeKind.ROUTE, NodeKind.BACKEND, NodeKind.SERVICE}
        used = {entry.target for entry in self.entries} | {name for entry in self.entries for name in entry.leads_to}
        nodes = [node for node in self.graph.nodes.values() if node.id in used or node.kind in destinations]
        return sorted(nodes, key=lambda node: (node.namespace is None, *_in_order(node)))

    @cached_property
    def nodes(self) -> list[GraphNode]:
        """Return every node once, by namespace."""
        nodes = {node.id: node for node in (*self.sources, *self.targets)}
        return sorted(nodes.values(), key=lambda node: (node.namespace is None, *_in_order(node)))


def _in_order(node: GraphNode) -> tuple[object, object]:
    return natural(node.namespace or ""), natural(node.id)


def caller_name(node: GraphNode) -> str:
    """Return the name of a caller in a picture, without its namespace."""
    if node.kind is NodeKind.OTHER_ACCOUNTS:
        return "other accounts" if node.namespace is not None else "other accounts of the trust domain"
    words = {"outside": "other trust domains", "anonymous": "no identity"}
    return words.get(node.id, node.name)


def shorten(text: str, most: int) -> str:
    """Cut a text that is too long."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
