"""Pairs of groups, counted by pods: where network policies decide, the callers of a group are its pods.

Callers of a row that are no pods of the manifests keep a name of their own. What everyone may do is an edge from
`anyone`, and not one from each group, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from eastgate.basics.records import dataclass
from eastgate.reports.graph.build import Survey
from eastgate.reports.graph.model import Bundle, Graph, GraphNode, NodeKind, ReachVerdict
from eastgate.reports.graph.ports import PortSet, port_set_of, union


@dataclass(frozen=True, slots=True)
class PodRowsOfGraph:
    """The rows of a graph by pod: `each` names every pod and nothing else, `named` says `anyone`, too."""

    each: Graph
    named: Graph


@dataclass(frozen=True, slots=True)
class GroupPairs:
    """What is known of the pairs of two groups: how many there are, and the rows that some of them have.

    `ports` are those of all rows together, and `open` pairs are allowed on each of them without a condition.
    """

    source: GraphNode
    target: GraphNode
    all: int
    reached: int
    open: int
    rows: tuple[Bundle, ...]
    ports: PortSet


def pair_groups(surveyed: Survey, rows: PodRowsOfGraph, group_of: Callable[[GraphNode], GraphNode]) -> list[GroupPairs]:
    """Return the pairs of groups that some row is about."""
    workloads = {node.id for node in surveyed.workloads}
    targets: dict[GraphNode, list[str]] = defaultdict(list)
    addresses = [node for node in rows.named.nodes.values() if node.kind is NodeKind.ADDRESSES]
    for node in (*(node for name, node in surveyed.targets.items() if name in workloads), *addresses):
        targets[group_of(node)].append(node.id)
    bits = {node.id: 1 << number for number, node in enumerate(surveyed.workloads)}
    sources: dict[GraphNode, int] = defaultdict(int)
    for node in _callers(surveyed):
        sources[group_of(node)] |= bits[node.id]
    crowds, others, pods = _by_target(surveyed, rows, bits)
    found: list[GroupPairs] = []
    for target, members in targets.items():
        for source, mask in sources.items():
            if any(_saying(row) not in crowds[name] for name in members for m, row in pods[name] if m & mask):
                found += _count(source, target, mask, {name: pods[name] for name in members}, bits)
        for other in dict.fromkeys(node for name in members for node in others[name]):
            found += _count(other, target, 1, {name: others[name].get(other, []) for name in members}, {})
    return found


def _callers(surveyed: Survey) -> Iterator[GraphNode]:
    """Yield the pods that are asked about as callers."""
    accounts = {node.id: node for node in surveyed.every_caller.values()}
    for node in surveyed.workloads:
        account = accounts.get(node.account) if node.account is not None else None
        if account is not None and surveyed.selection.chooses_pod(node, account):
            yield node


_Calls = list[tuple[int, Bundle]]


def _by_target(
    surveyed: Survey, rows: PodRowsOfGraph, bits: Mapping[str, int]
) -> tuple[dict[str, set[object]], dict[str, dict[GraphNode, _Calls]], dict[str, _Calls]]:
    """Return the rows to each destination: what everyone may do, the rows of other callers, and those of pods."""
    crowds: dict[str, set[object]] = defaultdict(set)
    others: dict[str, dict[GraphNode, _Calls]] = defaultdict(lambda: defaultdict(list))
    pods: dict[str, _Calls] = defaultdict(list)
    accounts = {node.account for node in surveyed.workloads}
    for row in rows.named.bundles:
        for node in (rows.named.nodes[name] for name in row.sources if name not in bits and name not in accounts):
            for target in row.targets:
                others[target][node].append((1, row))
                crowds[target] |= {_saying(row)} if node.kind is NodeKind.ANYONE else set()
    for row in rows.each.bundles:
        mask = sum(bits[name] for name in row.sources if name in bits)
        for target in row.targets if mask else ():
            pods[target].append((mask, row))
    return crowds, others, pods


def _saying(row: Bundle) -> object:
    return port_set_of(row), row.verdict, row.condition, row.service, row.tls


def _count(
    source: GraphNode, target: GraphNode, callers: int, calls: Mapping[str, _Calls], bits: Mapping[str, int]
) -> Iterator[GroupPairs]:
    rows = dict.fromkeys(row for listed in calls.values() for mask, row in listed if mask & callers)
    allowed = [row for row in rows if row.verdict is not ReachVerdict.DENY]
    ports = union(stretch for row in allowed for stretch in port_set_of(row))
    count = reached = is_open = 0
    for name, listed in calls.items():
        meant = callers & ~bits.get(name, 0) or callers  # replicas of one workload are no pair beside others
        some = 0
        blocks: list[tuple[int, PortSet]] = [(meant, ())]  # callers, and the ports on which all is allowed to them
        for mask, row in listed:
            some |= 0 if row.verdict is ReachVerdict.DENY else mask & meant
            if row.verdict is ReachVerdict.ALLOW:
                more = port_set_of(row)
                blocks = [
                    *((who & mask, union([*had, *more])) for who, had in blocks),
                    *((who & ~mask, had) for who, had in blocks),
                ]
                blocks = [(who, had) for who, had in blocks if who]
        count += meant.bit_count()
        reached += some.bit_count()
        is_open += sum(who.bit_count() for who, had in blocks if ports and had == ports)
    if rows:
        yield GroupPairs(source, target, count, reached, is_open, tuple(rows), ports)
