"""The selected part of a graph: callers, destinations, ports, tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.cluster.question_errors import BAD_ATTRIBUTE, QuestionError
from eastgate.ir import Between
from eastgate.ir.attributes import MCP_METHOD, MCP_TOOL, METHOD
from eastgate.ir.symbolic.partial import Facts
from eastgate.reach.destinations import Destination, Entrance
from eastgate.reach.requests import EVERY_PORT
from eastgate.reports.graph.model import Bundle, GraphNode, NodeKind
from eastgate.reports.graph.reached import entrances_at
from eastgate.reports.graph.text import limit

# Exact sets of ports as sorted ranges.


Stretches = tuple[tuple[int, int], ...]
"""Sorted ranges of numbers; both ends are included."""
PortSet = Stretches

_EVERY: PortSet = ((EVERY_PORT.first, EVERY_PORT.last),)
_MAX_LISTED_PORTS = 64  # ports that are listed one by one


def port_sets(destination: Destination, port: int | None) -> Iterator[tuple[Entrance, PortSet]]:
    """Yield the entrances that accept requests to a port, with the selected ports; port None means any port."""
    named: dict[str | None, set[int]] = {}
    for entrance in destination.entrances:
        named.setdefault(entrance.service, set()).update(entrance.ports)
    for entrance, numbers, others in entrances_at(destination, port):
        yield entrance, ports_in(numbers, entrance.ranges if others else (), named[entrance.service])


def ports_in(numbers: Iterable[int], ranges: Iterable[Between], named: Iterable[int]) -> PortSet:
    """Return some ports, and all ports of these ranges that have no name."""
    free = _without(union((each.first, each.last) for each in ranges), named)
    return union([*free, *((number, number) for number in numbers)])


def _without(ports: PortSet, numbers: Iterable[int]) -> PortSet:
    taken = union((number, number) for number in numbers)
    return complement(union([*complement(ports, _EVERY), *taken]), _EVERY)


def union(stretches: Iterable[tuple[int, int]]) -> Stretches:
    """Return the union of ranges."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(stretches):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return tuple(merged)


def complement(stretches: Stretches, every: Stretches) -> Stretches:
    """Return the numbers of the range `every` that are not in the ranges."""
    ((start, end),) = every
    left: list[tuple[int, int]] = []
    for first, last in stretches:
        if first > start:
            left.append((start, first - 1))
        start = last + 1
    return (*left, (start, end)) if start <= end else tuple(left)


def is_subset(ports: PortSet, others: PortSet) -> bool:
    """Return whether the ports are a subset of the others."""
    return union([*ports, *others]) == others


def port_set_of(bundle: Bundle) -> PortSet:
    """Return the ports of a bundle that `with_ports` made."""
    numbers = [(port, port) for port in bundle.ports]
    if not bundle.other_ports:
        return union(numbers)
    if bundle.port_ranges:
        return union([*numbers, *bundle.port_ranges])
    return _without(_EVERY, bundle.closed_ports)


def _listed(ports: PortSet) -> tuple[int, ...] | None:
    """Return ports one by one; None if there are too many."""
    if sum(last - first + 1 for first, last in ports) > _MAX_LISTED_PORTS:
        return None
    return tuple(port for first, last in ports for port in range(first, last + 1))


def with_ports(bundle: Bundle, ports: PortSet) -> Bundle:
    """Return a bundle of edges to these ports."""
    listed = _listed(ports)
    if listed is not None:
        return replace(bundle, ports=listed, other_ports=False)
    closed = _listed(complement(ports, _EVERY))
    if closed is not None:
        return replace(bundle, ports=(), other_ports=True, any_port=not closed, closed_ports=closed)
    return replace(bundle, ports=(), other_ports=True, port_ranges=ports)


_LAST_PORT = 65535
_MAX_PORT_NAMES = 6  # names of ports


@dataclass(frozen=True, slots=True)
class GraphSelection:
    """The selected part of a graph. Names may have `*` in them; no names select everything.

    `namespace`: edges from it or to it. `external`: only callers from outside. `denied`: also pairs that are denied
    everything. `near`: also the access of a pod to itself and from its node. `exact`: conditions cover all requests.
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
        """Return whether the selection includes everything."""
        return not (self.sources or self.targets or self.namespace or self.external) and self.port is None

    def chooses_source(self, node: GraphNode, accounts: Iterable[str]) -> bool:
        """Return whether a caller is selected; `accounts` are those of the selected pods."""
        if self.external and not node.is_external:
            return False
        return not self.sources or node.id in accounts or _matches(node, self.sources)

    def chooses_pod(self, pod: GraphNode, account: GraphNode) -> bool:
        """Return whether a pod is selected as a caller, by its own name or by its account."""
        return not self.sources or _matches(pod, self.sources) or _matches(account, self.sources)

    def chooses_target(self, node: GraphNode, behind: Iterable[str]) -> bool:
        """Return whether a destination is selected; `behind` are the pods of the selected Services."""
        return not self.targets or node.id in behind or _matches(node, self.targets)

    def chooses_pair(self, source: GraphNode, target: GraphNode) -> bool:
        """Return whether edges between two selected nodes are selected."""
        return self.namespace is None or self.namespace in (source.namespace, target.namespace)

    # Indirect names

    def accounts(self, nodes: Iterable[GraphNode]) -> frozenset[str]:
        """Return the accounts of the pods that the sources name."""
        pods = [node for node in nodes if node.kind is NodeKind.POD and _matches(node, self.sources)]
        return frozenset(node.account for node in pods if node.account is not None)

    def behind(self, world: World) -> frozenset[str]:
        """Return the pods of the Services that the targets name."""
        services = [key for key in world.services if any(fnmatchcase(f"service:{key}", name) for name in self.targets)]
        return frozenset(f"pod:{pod}" for key in services for pod in world.pods_of(key))


def facts_of(selection: GraphSelection) -> Facts:
    """Return the facts that hold for every selected request."""
    if selection.tool is None:
        return Facts()
    return Facts({MCP_METHOD: "tools/call", MCP_TOOL: selection.tool, METHOD: "POST"})


def _matches(node: GraphNode, names: Iterable[str]) -> bool:
    return any(fnmatchcase(node.id, name) or f"namespace:{node.namespace}" == name for name in names)


# Ports


def port_of(text: str, selection: GraphSelection, world: World) -> int:
    """Return a port by its number, or by its name at the selected workloads.

    Raises QuestionError if no workload has the name, or if the name has several numbers.
    """
    if text.isascii() and text.isdecimal():
        if 1 <= int(text) <= _LAST_PORT:
            return int(text)
        raise QuestionError(BAD_ATTRIBUTE, f"{text} is not a port", f"write a number from 1 to {_LAST_PORT}, or a name")
    behind = selection.behind(world)
    chosen = [
        pod
        for pod in world.workloads.values()
        if not selection.targets
        or f"pod:{pod.key}" in behind
        or any(
            name == f"namespace:{pod.namespace}" or fnmatchcase(f"pod:{pod.key}", name) for name in selection.targets
        )
    ]
    numbers = sorted({port.number for pod in chosen for port in pod.ports if port.name == text})
    if len(numbers) == 1:
        return numbers[0]
    if numbers:
        listed = ", ".join(map(str, numbers))
        raise QuestionError(BAD_ATTRIBUTE, f"several ports have the name `{text}`", f"write one of {listed}")
    names = sorted({f"{port.name} ({port.number})" for pod in chosen for port in pod.ports if port.name})
    way_out = f"they have {', '.join(limit(names, _MAX_PORT_NAMES))}" if names else "give its number"
    raise QuestionError(BAD_ATTRIBUTE, f"no destination has a port with the name `{text}`", way_out)
