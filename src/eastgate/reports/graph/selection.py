"""Which part of a graph is asked for: callers, destinations, ports, tools."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from eastgate.cluster import World
from eastgate.ir.attributes import MCP_METHOD, MCP_TOOL, METHOD
from eastgate.records import dataclass
from eastgate.reports.graph.model import GraphNode, NodeKind
from eastgate.symbolic.partial import Facts


@dataclass(frozen=True, slots=True)
class GraphSelection:
    """The part of a graph that is asked for. Names may have `*` in them; none at all stand for everything.

    `namespace`: edges from it or to it. `external`: only callers from outside. `denied`: also what nobody can reach.
    `near`: also the access of a pod to itself and from its node. `exact`: conditions are about all requests.
    """

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    port: int | None = None
    namespace: str | None = None
    tool: str | None = None
    external: bool = False
    denied: bool = False
    near: bool = False
    exact: bool = False

    @property
    def is_everything(self) -> bool:
        """Return whether it leaves nothing out."""
        return not (self.sources or self.targets or self.namespace or self.external) and self.port is None

    def chooses_source(self, node: GraphNode, accounts: Iterable[str]) -> bool:
        """Tell whether a caller is asked for; `accounts` are those of the pods that are."""
        if self.external and not node.is_external:
            return False
        return not self.sources or node.id in accounts or _matches(node, self.sources)

    def chooses_pod(self, pod: GraphNode, account: GraphNode) -> bool:
        """Tell whether a pod is asked for as a caller: by its own name, or by that of its account."""
        return not self.sources or _matches(pod, self.sources) or _matches(account, self.sources)

    def chooses_target(self, node: GraphNode, behind: Iterable[str]) -> bool:
        """Tell whether a destination is asked for; `behind` are those that Services lead to that are."""
        return not self.targets or node.id in behind or _matches(node, self.targets)

    def chooses_pair(self, source: GraphNode, target: GraphNode) -> bool:
        """Tell whether edges between two nodes are asked for, each of which is."""
        return self.namespace is None or self.namespace in (source.namespace, target.namespace)

    # Names that stand for others

    def accounts(self, nodes: Iterable[GraphNode]) -> frozenset[str]:
        """Return the accounts of the pods that sources name."""
        pods = [node for node in nodes if node.kind is NodeKind.POD and _matches(node, self.sources)]
        return frozenset(node.account for node in pods if node.account is not None)

    def behind(self, world: World) -> frozenset[str]:
        """Return the pods of the Services that targets name."""
        services = [key for key in world.services if any(fnmatchcase(f"service:{key}", name) for name in self.targets)]
        return frozenset(f"pod:{pod}" for key in services for pod in world.pods_of(key))


def facts_of(selection: GraphSelection) -> Facts:
    """Return what is known of every request that is asked about."""
    if selection.tool is None:
        return Facts()
    return Facts({MCP_METHOD: "tools/call", MCP_TOOL: selection.tool, METHOD: "POST"})


def _matches(node: GraphNode, names: Iterable[str]) -> bool:
    return any(fnmatchcase(node.id, name) or f"namespace:{node.namespace}" == name for name in names)
