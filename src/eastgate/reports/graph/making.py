"""The requested graph: of single callers and destinations, or of groups if there are too many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eastgate.authority.authority import programs_of
from eastgate.cluster.points import Direction, NetworkEnd
from eastgate.ir.symbolic.callers import AnonymousCell
from eastgate.reach.destinations import DestinationKind
from eastgate.reports.cluster import effects_of
from eastgate.reports.graph.aggregate import Grouping, count_groups, group_graph
from eastgate.reports.graph.build import Survey, bundles_of, list_graph, merge_targets, nodes_of
from eastgate.reports.graph.model import Bundle, Graph, GraphNode, ReachVerdict
from eastgate.reports.graph.pod_groups import GraphPodRows
from eastgate.reports.graph.reached import DestinationVerdicts
from eastgate.reports.graph.selection import union

MOST_NODES = 120  # most nodes of a picture


def make_graph(
    surveyed: Survey, by: Grouping | None = None, *, why: bool = True, most: int | None = None, pods: bool = False
) -> Graph:
    """Return the graph of a survey with at most `most` nodes. Without `by`, only larger graphs are grouped.

    `pods`: rows begin at pods where network policies decide.
    """
    if by is not None and not (by is Grouping.WORKLOAD and pods):
        return _grouped(surveyed, by, why=why)
    graph = _by_pod(surveyed, why=why) if pods else _with_pods(surveyed, list_graph(surveyed, why=why))
    if most is None or len(graph.nodes) <= most:
        return graph
    every = len(graph.nodes)
    coarser = Grouping.APP if count_groups(surveyed, Grouping.APP) <= most else Grouping.NAMESPACE
    graph = _grouped(surveyed, coarser, why=why)
    note = f"{every} callers and destinations are too many for a picture: they are grouped by {coarser} (--by)"
    return replace(graph, notes=(*graph.notes, note))


def _by_pod(surveyed: Survey, *, why: bool, each: bool = False) -> Graph:
    """Return the graph whose rows begin at pods where network policies decide, and at accounts elsewhere.

    `each`: rows name every pod, and nothing else.
    """
    if not programs_of(surveyed.reach.authority).has_network_policies:
        graph = list_graph(surveyed, why=why)
        nodes = _with_protection(surveyed, graph.nodes)
        return replace(graph, nodes=nodes, is_whole=surveyed.selection.is_everything)
    from eastgate.reports.graph.egress import find_egress  # imported here because many clusters have no such policies
    from eastgate.reports.graph.future import FutureNamespaces
    from eastgate.reports.graph.pods import PodRows

    rows, new = PodRows(surveyed, why=why, each=each), FutureNamespaces(surveyed, why=why)
    egress = find_egress(surveyed, why=why)
    found: list[Bundle] = []
    for reached in surveyed.reached:
        if reached.destination.kind is DestinationKind.POD:
            found += [*rows.bundles(reached), *(new.bundles(reached) if not each else ())]
        else:
            found += bundles_of(surveyed, reached, why=why)
    merged = [*merge_targets(found), *merge_targets(egress.bundles)]
    known = {**nodes_of(surveyed, merged), **rows.nodes, **new.nodes, **egress.nodes, **_workloads(surveyed)}
    used = dict.fromkeys(name for bundle in merged for name in (*bundle.sources, *bundle.targets))
    is_whole = surveyed.selection.is_everything
    if is_whole:
        used |= dict.fromkeys(surveyed.targets)
    nodes = _with_protection(surveyed, {name: known[name] for name in used})
    return Graph(nodes, tuple(merged), surveyed.everybody, by_pod=True, is_whole=is_whole)


def _workloads(surveyed: Survey) -> dict[str, GraphNode]:
    return {node.id: node for node in surveyed.workloads}


def _with_pods(surveyed: Survey, graph: Graph) -> Graph:
    """Add edges of pods that network policies distinguish, and egress, to a graph of accounts."""
    if not programs_of(surveyed.reach.authority).has_network_policies:
        return replace(graph, nodes=_with_protection(surveyed, graph.nodes))
    pods = _by_pod(surveyed, why=True, each=True)
    plain = {
        (source, target)
        for bundle in graph.bundles
        if bundle.verdict is not ReachVerdict.DEPENDS
        for source in bundle.sources
        for target in bundle.targets
    }
    accounts = {node.id: node.account for node in surveyed.workloads}
    added = []
    for bundle in pods.bundles:
        for target in bundle.targets:
            names = tuple(n for n in bundle.sources if n in accounts and (accounts[n], target) not in plain)
            if names:
                alone = replace(bundle, sources=names, targets=(target,))
                added.append(_name_ports_alike(alone, graph) if target in surveyed.targets else alone)
    nodes = {name: pods.nodes.get(name, node) for name, node in graph.nodes.items()}
    used = dict.fromkeys(name for bundle in added for name in (*bundle.sources, *bundle.targets))
    nodes |= {name: pods.nodes[name] for name in used if name not in nodes}
    return replace(graph, nodes=nodes, bundles=(*graph.bundles, *merge_targets(added)))


def _name_ports_alike(bundle: Bundle, graph: Graph) -> Bundle:
    """Return a bundle that names the same ports as the edges of a graph to its target. Its other ports are ranges."""
    named = {port for each in graph.bundles if bundle.targets[0] in each.targets for port in each.ports}
    if not bundle.other_ports:
        rest = tuple((port, port) for port in bundle.ports if port not in named)
        ports = tuple(port for port in bundle.ports if port in named)
        return replace(bundle, ports=ports, other_ports=bool(rest), port_ranges=union(rest))
    ranges = bundle.port_ranges or ((1, 65_535),)
    ports = tuple(sorted(p for p in named if p not in bundle.closed_ports and any(a <= p <= z for a, z in ranges)))
    return replace(bundle, ports=ports)


def _with_protection(surveyed: Survey, nodes: Mapping[str, GraphNode]) -> dict[str, GraphNode]:
    """Mark the workloads that no policy protects. Any caller may reach them, unless a policy restricts its egress."""
    bare = {
        name
        for reached in surveyed.reached
        if reached.destination.kind is DestinationKind.POD
        for name in reached.members
        if _is_unprotected(surveyed, reached, name)
    }
    return {name: replace(node, is_protected=name not in bare) for name, node in nodes.items()}


def _is_unprotected(surveyed: Survey, reached: DestinationVerdicts, name: str) -> bool:
    engine, reach = programs_of(surveyed.reach.authority), surveyed.reach
    workload = surveyed.reach.authority.world.workloads[name.partition(":")[2]]
    layers = list(engine.program(workload.key).layers)
    if engine.has_network_policies and workload.is_pod and not workload.host_network:
        layers += engine.program(NetworkEnd(workload.key, Direction.INGRESS)).layers
    if effects_of(layers).enforced:
        return False
    anonymous = reach.callers.set_of([AnonymousCell()])
    return all(
        answer.allowed is True
        for entrance in reached.destination.entrances
        for answer in reach.answers(entrance)
        if answer.callers & anonymous
    )


def _grouped(surveyed: Survey, by: Grouping, *, why: bool) -> Graph:
    if by is Grouping.WORKLOAD:
        return list_graph(surveyed, why=why)
    if not programs_of(surveyed.reach.authority).has_network_policies:
        return group_graph(surveyed, by)
    rows = GraphPodRows(_by_pod(surveyed, why=why, each=True), _by_pod(surveyed, why=why))
    return group_graph(surveyed, by, rows)
