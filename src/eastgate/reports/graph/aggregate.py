"""Graphs of groups: callers and destinations by service account, application or namespace.

An edge between groups is open only if every request of every pair of caller and destination is allowed. Pairs are
counted by classes of destinations and sets of callers, and never listed.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from eastgate.basics.records import dataclass
from eastgate.ir import Origin
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.destinations import DestinationKind
from eastgate.reports.effective.words import ports_text
from eastgate.reports.graph.build import Survey, node_behind
from eastgate.reports.graph.model import AllowedWay, Bundle, Graph, GraphNode, NodeKind, Pairs, ReachVerdict
from eastgate.reports.graph.pod_groups import GraphPodRows, GroupPairs, pair_groups
from eastgate.reports.graph.reached import DestinationVerdicts, ReachOutcome
from eastgate.reports.graph.selection import PortSet, with_ports

_MAX_CONDITION_CHARS = 120  # length of a condition between groups


class Grouping(enum.StrEnum):
    """The attribute that callers and destinations are grouped by."""

    WORKLOAD = "workload"
    SERVICE_ACCOUNT = "service-account"
    APP = "app"
    NAMESPACE = "namespace"


def group_graph(surveyed: Survey, by: Grouping, rows: GraphPodRows | None = None) -> Graph:
    """Return the graph of groups.

    `rows` are the rows of workloads by pod, for networks where only network policies decide.
    """
    groups = _Groups(surveyed, by)
    counted: dict[tuple[str, str], _Count] = defaultdict(_Count)
    if rows is not None:
        counted |= {(pairs.source.id, pairs.target.id): _count_of(pairs) for pairs in groups.pair_pods(rows)}
    for reached in surveyed.reached:
        if rows is not None and reached.destination.kind is DestinationKind.POD:
            continue
        for target, members in groups.targets_of(reached.members).items():
            for source, callers in groups.callers.items():
                _count(counted[source, target], callers, len(members), reached)
    merged: dict[Bundle, list[str]] = {}
    for (source, target), count in counted.items():
        behind = groups.groups_behind(count.ways, target)
        bundle = count.bundle(target, behind, surveyed.selection.denied) if groups.are_chosen(source, target) else None
        if bundle is not None:
            merged.setdefault(bundle, []).append(source)
    bundles = tuple(replace(bundle, sources=tuple(sources)) for bundle, sources in merged.items())
    used = {name for bundle in bundles for name in (*bundle.sources, *bundle.targets, *bundle.leads_to)}
    is_whole = surveyed.selection.is_everything
    used |= (groups.destinations if rows is not None else groups.nodes.keys()) if is_whole else set()
    nodes = {name: node for name, node in groups.nodes.items() if name in used}
    everybody = tuple(groups.callers) if surveyed.everybody and rows is None else ()
    return Graph(nodes, bundles, everybody, by_pod=rows is not None)


def count_groups(surveyed: Survey, by: Grouping) -> int:
    """Return the largest possible number of nodes of the graph of groups."""
    return len(_Groups(surveyed, by).nodes)


class _Groups:
    """The groups of a survey: callers as sets, destinations by name."""

    def __init__(self, surveyed: Survey, by: Grouping) -> None:
        self._found = surveyed
        self._by = by
        self.nodes: dict[str, GraphNode] = {}
        self.callers: dict[str, CallerSet] = defaultdict(int)
        self._targets: dict[str, GraphNode] = {}
        apps = _apps_of_accounts(surveyed)
        for number, node in (surveyed.every_caller if by is Grouping.NAMESPACE else surveyed.callers).items():
            for group in self._groups_of_caller(node, apps):
                self.callers[group.id] |= 1 << number
                self._add(group)
        for name, node in surveyed.targets.items():
            self._targets[name] = self._group_of(node)
            self._add(self._targets[name])

    def _add(self, group: GraphNode) -> None:
        before = self.nodes.get(group.id)
        self.nodes[group.id] = replace(group, size=1 if before is None else before.size + 1)

    def _groups_of_caller(self, node: GraphNode, apps: Mapping[str, Iterable[GraphNode]]) -> Iterable[GraphNode]:
        if self._by is Grouping.APP and node.id in apps:
            return apps[node.id]
        return (self._group_of(node),)

    def _group_of(self, node: GraphNode) -> GraphNode:
        match self._by:
            case Grouping.NAMESPACE if node.namespace is not None:
                return GraphNode(f"namespace:{node.namespace}", NodeKind.NAMESPACE, node.namespace)
            case Grouping.SERVICE_ACCOUNT if node.account is not None:
                return GraphNode(node.account, NodeKind.SERVICE_ACCOUNT, node.namespace)
            case Grouping.APP if node.app is not None:
                return _app(node)
            case _:
                return node

    @property
    def destinations(self) -> set[str]:
        """Return the groups of destinations."""
        return {group.id for group in self._targets.values()}

    def pair_pods(self, rows: GraphPodRows) -> Iterator[GroupPairs]:
        """Yield the pairs of groups, by pods."""
        for pairs in pair_groups(self._found, rows, self._group_of):
            for node in (pairs.source, pairs.target):
                self.nodes.setdefault(node.id, node)
            yield pairs

    def targets_of(self, members: Iterable[str]) -> dict[str, list[str]]:
        """Return destinations by their group."""
        by_group: dict[str, list[str]] = {}
        for name in members:
            by_group.setdefault(self._targets[name].id, []).append(name)
        return by_group

    def groups_behind(self, ways: Iterable[AllowedWay], target: str) -> tuple[str, ...]:
        """Return the groups that ways lead to, except for the target itself."""
        groups: dict[str, None] = {}
        for name in dict.fromkeys(name for way in ways for name in way.leads_to):
            group = self._targets.get(name) or self._group_of(node_behind(name))
            if group.id != target:
                groups[group.id] = None
                self.nodes.setdefault(group.id, group)
        return tuple(groups)

    def are_chosen(self, source: str, target: str) -> bool:
        """Return whether the selection includes edges between two groups."""
        return self._found.selection.chooses_pair(self.nodes[source], self.nodes[target])


def _app(node: GraphNode) -> GraphNode:
    return GraphNode(f"app:{node.namespace}/{node.app}", NodeKind.APP, node.namespace)


def _apps_of_accounts(surveyed: Survey) -> dict[str, dict[GraphNode, None]]:
    """Return the applications that run as each account."""
    apps: dict[str, dict[GraphNode, None]] = defaultdict(dict)
    for node in surveyed.workloads:
        if node.account is not None:
            apps[node.account][_app(node)] = None
    return apps


# Counting


@dataclass(slots=True)
class _Count:
    """The counts of the pairs of two groups."""

    open: int = 0
    reached: int = 0
    all: int = 0
    ports: frozenset[int] = frozenset()
    other_ports: bool = False
    ways: tuple[AllowedWay, ...] = ()
    conditions: frozenset[str] = frozenset()
    denied_by: tuple[Origin, ...] = ()
    port_set: PortSet = ()  # ports of pods

    def bundle(self, target: str, behind: tuple[str, ...], denied: bool) -> Bundle | None:
        """Return the edge to a group; None if no request is allowed."""
        pairs = Pairs(self.open, self.reached, self.all)
        ports = tuple(sorted(self.ports))
        rules = tuple(dict.fromkeys(origin for way in self.ways for origin in way.by))
        ways: tuple[AllowedWay, ...] = ()
        if not self.reached:
            verdict = ReachVerdict.DENY
            if not denied:
                return None
        elif self.open == self.all:
            verdict, ways = ReachVerdict.ALLOW, (AllowedWay(None, rules, behind),)
        else:
            verdict, ways = ReachVerdict.DEPENDS, (AllowedWay(self._condition(), rules, behind),)
        every = self.other_ports and self.open == self.reached
        made = Bundle(
            (), (target,), ports, self.other_ports, verdict, ways, self.denied_by, pairs=pairs, any_port=every
        )
        return with_ports(made, self.port_set) if self.port_set else made

    def _condition(self) -> str:
        """Return the share of the pairs that are allowed something, and the condition if there is one."""
        if self.reached == self.all and len(self.conditions) == 1:
            (condition,) = self.conditions
            if 0 < len(condition) <= _MAX_CONDITION_CHARS:
                return condition
        limits = []
        if self.open < self.reached:
            ports = ports_text(self.ports, others=False, alone=False)
            limits += (
                [] if self.other_ports or self.port_set else [f"on port{'s' if len(self.ports) > 1 else ''} {ports}"]
            )
            limits += ["under conditions"] if any(self.conditions) else []
        if self.reached == self.all == 1 and limits:
            return " and ".join(limits)
        share = f"{self.reached} of {self.all} pairs"
        return f"{share}, {' and '.join(limits)}" if limits else share


def _count(count: _Count, callers: CallerSet, members: int, reached: DestinationVerdicts) -> None:
    """Add the outcomes between some callers and some destinations that decide alike."""
    everything, something = callers, 0
    for entrance in reached.entrances:
        open_here = 0
        for outcome in entrance.outcomes:
            met = outcome.callers & callers
            if met and outcome.verdict is not ReachVerdict.DENY:
                something |= met
                open_here |= met if outcome.verdict is ReachVerdict.ALLOW else 0
                count.ports |= frozenset(entrance.ports)
                count.other_ports = count.other_ports or entrance.other_ports
                _remember(count, outcome)
            elif met:
                count.denied_by = tuple(dict.fromkeys((*count.denied_by, *outcome.denied_by)))
        everything &= open_here
    if not reached.entrances:
        everything = 0
    count.open += everything.bit_count() * members
    count.reached += something.bit_count() * members
    count.all += callers.bit_count() * members


def _count_of(pairs: GroupPairs) -> _Count:
    """Return the counts of pairs, from their rows."""
    count = _Count(pairs.open, pairs.reached, pairs.all, port_set=pairs.ports)
    for row in pairs.rows:
        if row.verdict is ReachVerdict.DENY:
            count.denied_by = tuple(dict.fromkeys((*count.denied_by, *row.denied_by)))
            continue
        count.ports |= frozenset(row.ports)
        count.other_ports = count.other_ports or row.other_ports
        _remember(count, ReachOutcome(0, row.verdict, row.ways))
    return count


def _remember(count: _Count, outcome: ReachOutcome) -> None:
    count.ways = tuple(dict.fromkeys((*count.ways, *outcome.ways)))
    text = "; or ".join(way.condition for way in outcome.ways if way.condition)
    count.conditions |= {text if outcome.verdict is ReachVerdict.DEPENDS else ""}
