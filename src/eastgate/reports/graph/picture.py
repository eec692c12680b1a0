"""What pictures of a graph show: entries of destinations, and who comes in by them.

Where nearly everybody may do something, that is one node of its own ("anyone but sandbox"), and not an edge from each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from eastgate.ir import Origin
from eastgate.records import dataclass
from eastgate.reports.graph.model import Bundle, Graph, GraphNode, NodeKind, ReachVerdict
from eastgate.reports.graph.words import name_ports, rule_name, sources_of

__all__ = ["Picture", "WayIn", "shorten"]


@dataclass(frozen=True, slots=True)
class WayIn:
    """One way into a destination: the ports, the condition, and who may take it."""

    target: str
    sources: tuple[str, ...]
    ports: str
    verdict: ReachVerdict
    condition: str | None
    deciders: tuple[Origin, ...]
    leads_to: tuple[str, ...]
    is_group: bool = False

    @property
    def rules(self) -> list[str]:
        """Return the rules that decide, each with the line where it is written."""
        return [rule_name(origin) for origin in self.deciders]

    @property
    def label(self) -> str:
        """Return the ports and the condition; of groups, the condition says all."""
        if self.is_group and self.condition is not None:
            return self.condition
        return self.ports if self.condition is None else f"{self.ports}: {self.condition}"


class Picture:
    """The nodes and entries of a picture. Callers that no edge begins at are left out, as are other groups of them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.crowds: dict[str, GraphNode] = {}
        self.entries = [entry for bundle in graph.bundles for entry in self._entries(bundle)]

    def _entries(self, bundle: Bundle) -> Iterator[WayIn]:
        sources = tuple(sources_of(bundle, self.graph))
        for name in sources:
            if name not in self.graph.nodes:
                self.crowds[name] = GraphNode(name, NodeKind.OTHER_ACCOUNTS)
        ports = name_ports(bundle) + (f" of service:{bundle.service}" if bundle.service else "")
        for target in bundle.targets:
            is_group = bundle.pairs is not None
            yield WayIn(
                target, sources, ports, bundle.verdict, bundle.condition, bundle.deciders, bundle.leads_to, is_group
            )

    @cached_property
    def behind(self) -> frozenset[str]:
        """Return the backends that gateways lead to: whoever may reach them comes by these."""
        led_to = {name for entry in self.entries for name in entry.leads_to}
        nodes = self.graph.nodes
        return frozenset(name for name in led_to if name in nodes and nodes[name].kind is NodeKind.BACKEND)

    @cached_property
    def sources(self) -> list[GraphNode]:
        """Return the callers that an edge begins at: those of namespaces first, and then from wider to widest."""
        used = dict.fromkeys(name for entry in self.entries for name in entry.sources)
        nodes = [self.graph.nodes.get(name) or self.crowds[name] for name in used]
        return sorted(
            nodes, key=lambda node: (node.id in self.crowds, node.namespace is None, node.namespace or "", node.id)
        )

    @cached_property
    def targets(self) -> list[GraphNode]:
        """Return the destinations, also those that nobody reaches."""
        destinations = {NodeKind.POD, NodeKind.GATEWAY, NodeKind.ROUTE, NodeKind.BACKEND, NodeKind.SERVICE}
        used = {entry.target for entry in self.entries} | {name for entry in self.entries for name in entry.leads_to}
        nodes = [node for node in self.graph.nodes.values() if node.id in used or node.kind in destinations]
        return sorted(nodes, key=lambda node: (node.namespace is None, node.namespace or "", node.id))


def shorten(text: str, most: int) -> str:
    """Cut a text that is too long."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
