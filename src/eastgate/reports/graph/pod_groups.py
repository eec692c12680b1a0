"""Pairs of groups, counted by pods: where network policies decide, the callers of a group are its pods.

Callers of a row that are not pods of the manifests keep their own names. If all callers are allowed something, the edge
starts at `anyone` instead of at each group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from eastgate.basics.records import dataclass
from eastgate.cluster import Workload
from eastgate.ir import Labelled
from eastgate.ir.symbolic.partial import Facts
from eastgate.reach.network import network_reach
from eastgate.reports.connections import selector_text
from eastgate.reports.effective.words import ANY_IDENTITY, ANYONE
from eastgate.reports.graph.build import Survey
from eastgate.reports.graph.model import Bundle, Graph, GraphNode, NodeKind, ReachVerdict
from eastgate.reports.graph.reached import DestinationVerdicts
from eastgate.reports.graph.selection import PortSet, port_set_of, union
from eastgate.reports.graph.text import labels_words, natural

# Names of the callers in rows by pod: single pods, kinds of pods by their labels, and sets such as `anyone`.


CLUSTER = "anyone in the cluster"
OUTSIDE = "outside the cluster"
_ANYWHERE, _ELSEWHERE = "[any namespace]", "[other namespaces]"
MAX_EXCEPTIONS = 3  # callers that are listed as exceptions


@dataclass(frozen=True, slots=True, eq=False)
class PodCaller:
    """A caller of rows: a pod, a kind of pods that no manifest declares, or callers that are not pods.

    `labels` are those of a kind of pods; `like` are the existing pods with such labels. `is_closed`: a whole cell of
    callers whose requests are all denied.
    """

    id: str
    number: int
    facts: Facts
    namespace: str | None = None
    workload: Workload | None = None
    labels: str | None = None
    like: tuple[str, ...] = ()
    is_closed: bool = False


class PodNames:
    """The names of callers in the graph. `each`: rows name every pod, and nothing else."""

    def __init__(self, surveyed: Survey, *, each: bool) -> None:
        self._found = surveyed
        self._each = each
        self._authority = surveyed.reach.authority

    def sources(
        self,
        callers: Sequence[PodCaller],
        alike: set[PodCaller],
        all_callers: Sequence[PodCaller],
        reached: DestinationVerdicts,
        *,
        by_identity: bool,
        is_local: bool,
    ) -> list[GraphNode]:
        """Name the callers of a row: all of them, all but a few, or each. `alike` are allowed at least as much.

        `is_local`: the selection has only callers of one namespace.
        """
        if self._each:
            pods = [caller for caller in callers if caller.workload is not None]
            return [GraphNode(caller.id, NodeKind.POD, caller.namespace) for caller in pods]
        crowds: list[GraphNode] = []
        if 2 * len(callers) > len(alike) and self._found.has_all_callers and not is_local:
            crowd, homes = self._crowd(alike, all_callers, reached)
            crowds = [GraphNode(crowd, NodeKind.ANYONE)] if crowd is not None else []
            callers = callers if crowd is None else [caller for caller in callers if caller.namespace in homes]
        pods = [caller for caller in callers if caller.workload is not None]
        names = [GraphNode(caller.id, NodeKind.POD, caller.namespace) for caller in pods]
        if by_identity:
            names = [self._found.every_caller[number] for number in dict.fromkeys(caller.number for caller in pods)]
        names.sort(key=lambda node: natural(node.id))
        kinds = [caller for caller in callers if caller.labels is not None]
        if by_identity:
            whole = self._whole_cells(kinds, all_callers)
            is_all = any(self._found.every_caller[number].namespace is None for number in whole)
            names += [self._found.every_caller[n] for n in whole if n in self._found.callers or not is_all]
            kinds = [caller for caller in kinds if caller.number not in whole]
        names += self._kinds_named(kinds, alike, all_callers, reached)
        rest = [caller for caller in callers if caller.workload is None and caller.labels is None]
        outsiders = {caller.id for caller in all_callers if self._is_outsider(caller)}
        if len(outsiders) > 1 and outsiders <= {caller.id for caller in rest} and not by_identity:
            names.append(GraphNode(OUTSIDE, NodeKind.OUTSIDE))
            rest = [caller for caller in rest if caller.id not in outsiders]
        return [*crowds, *names, *(self._found.every_caller[caller.number] for caller in rest)]

    def _whole_cells(self, kinds: Sequence[PodCaller], all_callers: Sequence[PodCaller]) -> list[int]:
        """Return the cells of callers all of whose kinds of pods are given."""
        chosen = set(kinds)
        parts = {caller.number for caller in all_callers if caller.labels is not None and caller not in chosen}
        return [number for number in dict.fromkeys(caller.number for caller in kinds) if number not in parts]

    def _is_outsider(self, caller: PodCaller) -> bool:
        return self._found.every_caller[caller.number].is_external

    def _crowd(
        self, alike: set[PodCaller], all_callers: Sequence[PodCaller], reached: DestinationVerdicts
    ) -> tuple[str | None, frozenset[str]]:
        """Return the name for all callers, or for nearly all of them.

        Also return the namespaces that the name excludes although some of their callers are allowed. These callers are
        named separately.
        """
        missing = [caller for caller in all_callers if caller not in alike]
        if [caller.id for caller in missing] == ["anonymous"]:
            return ANY_IDENTITY, frozenset()
        outsiders = [caller for caller in all_callers if self._is_outsider(caller)]
        name = ANYONE
        if outsiders and set(outsiders) <= set(missing):
            missing = [caller for caller in missing if caller not in outsiders]
            name = CLUSTER
        if not missing:
            return name, frozenset()
        if any(caller.namespace is None for caller in missing):
            return None, frozenset()  # callers of other namespaces are the majority
        present = {caller.namespace for caller in all_callers if caller in alike}
        homes = {str(caller.namespace) for caller in missing}
        closed = homes - present
        rest = [caller for caller in missing if caller.namespace not in closed]
        pods = sorted((caller.id for caller in rest if caller.workload is not None), key=natural)
        kinds = [caller for caller in rest if caller.labels is not None and not set(caller.like) & set(pods)]
        many = sum(caller.workload is not None for caller in alike)
        is_account = any(caller.workload is None and caller.labels is None for caller in rest)
        if not is_account and 2 * len(pods) <= many:
            unmade = (node.id for node in self._kinds_named(kinds, set(rest), all_callers, reached))
            names = [*_whole(closed), *pods, *unmade]
            if len(names) <= MAX_EXCEPTIONS:
                return f"{name} but {', '.join(names)}", frozenset()
        if len(homes) <= MAX_EXCEPTIONS and len(homes) < len(present | homes):
            return f"{name} but {', '.join(_whole(homes))}", frozenset(homes)
        return None, frozenset()

    def _kinds_named(
        self,
        kinds: Sequence[PodCaller],
        alike: set[PodCaller],
        every: Sequence[PodCaller],
        reached: DestinationVerdicts,
    ) -> Iterator[GraphNode]:
        """Yield names for kinds of pods that no manifest declares, by namespace, in the words of the policies."""
        words: dict[str, list[str | None]] = defaultdict(list)
        workload = self._authority.world.workloads[reached.destination.members[0]]
        homes = {caller.namespace for caller in every if caller.labels is not None or caller.is_closed}
        for namespace in dict.fromkeys(caller.namespace for caller in kinds):
            found = network_reach(self._authority).kinds_of_pods(workload, namespace)
            selectors = found[0] if found is not None else []
            here = [caller for caller in every if caller.labels is not None and caller.namespace == namespace]
            mine = [caller for caller in kinds if caller.namespace == namespace]
            for text in _labels_named(mine, here, alike, selectors):
                words[text].append(namespace)
        for text, namespaces in words.items():
            if len(homes) > 1 and homes <= set(namespaces):
                yield GraphNode(f"{_ANYWHERE}/[{text}]", NodeKind.FUTURE_PODS)
                continue
            for namespace in namespaces:
                yield GraphNode(f"{namespace or _ELSEWHERE}/[{text}]", NodeKind.FUTURE_PODS, namespace)


def _labels_named(
    mine: Sequence[PodCaller], here: Sequence[PodCaller], alike: set[PodCaller], selectors: Sequence[Labelled]
) -> Iterator[str]:
    """Yield names for pods of a namespace: by selectors of policies that select only pods with the same outcome."""
    if all(caller in alike for caller in here):
        yield "other pods" if any(caller.like for caller in here) else "all pods"
        return
    left = {str(caller.labels) for caller in mine}
    named = []
    for selector in sorted(selectors, key=lambda each: (len(str(each)), str(each))):
        selected = [caller for caller in here if selector.contains(str(caller.labels))]
        covered = {str(caller.labels) for caller in selected} & left
        if covered and all(caller in alike for caller in selected):
            named.append(f"pods with {selector_text(selector.selector)}")
            left -= covered
    if left and all(caller in alike for caller in here if not caller.like):
        yield "other pods"
        return
    yield from (*named, *(f"pods with {labels_words(labels)}" for labels in sorted(left)))


def _whole(namespaces: Iterable[str]) -> list[str]:
    return [f"{namespace}/*" for namespace in sorted(namespaces, key=natural)]


@dataclass(frozen=True, slots=True)
class GraphPodRows:
    """The rows of a graph by pod: `each` names every pod and nothing else, `named` also uses `anyone`."""

    each: Graph
    named: Graph


@dataclass(frozen=True, slots=True)
class GroupPairs:
    """The pairs of two groups: their number, and the rows that some of them have.

    `ports` are those of all rows together. `open` pairs are allowed on each of them without a condition.
    """

    source: GraphNode
    target: GraphNode
    all: int
    reached: int
    open: int
    rows: tuple[Bundle, ...]
    ports: PortSet


def pair_groups(surveyed: Survey, rows: GraphPodRows, group_of: Callable[[GraphNode], GraphNode]) -> list[GroupPairs]:
    """Return the pairs of groups that appear in some row."""
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
    """Yield the pods that are selected as callers."""
    accounts = {node.id: node for node in surveyed.every_caller.values()}
    for node in surveyed.workloads:
        account = accounts.get(node.account) if node.account is not None else None
        if account is not None and surveyed.selection.chooses_pod(node, account):
            yield node


_Calls = list[tuple[int, Bundle]]


def _by_target(
    surveyed: Survey, rows: GraphPodRows, bits: Mapping[str, int]
) -> tuple[dict[str, set[object]], dict[str, dict[GraphNode, _Calls]], dict[str, _Calls]]:
    """Return the rows to each destination: those of all callers, of other callers, and of pods."""
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
        # replicas of one workload count as a pair only without other pairs
        counted_callers = callers & ~bits.get(name, 0) or callers
        some = 0
        # callers, and the ports on which all their requests are allowed
        blocks: list[tuple[int, PortSet]] = [(counted_callers, ())]
        for mask, row in listed:
            some |= 0 if row.verdict is ReachVerdict.DENY else mask & counted_callers
            if row.verdict is ReachVerdict.ALLOW:
                more = port_set_of(row)
                blocks = [
                    *((who & mask, union([*had, *more])) for who, had in blocks),
                    *((who & ~mask, had) for who, had in blocks),
                ]
                blocks = [(who, had) for who, had in blocks if who]
        count += counted_callers.bit_count()
        reached += some.bit_count()
        is_open += sum(who.bit_count() for who, had in blocks if ports and had == ports)
    if rows:
        yield GroupPairs(source, target, count, reached, is_open, tuple(rows), ports)
