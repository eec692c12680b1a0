"""Notes on objects that a graph could not consider: unread kinds, policies with errors, unknown labels and proxies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from eastgate.authority.authority import programs_of
from eastgate.authority.enforcement import inapplicable_lines
from eastgate.cluster import Workload
from eastgate.cluster.points import Point
from eastgate.cluster.unread import Callers, Handling, could_change, list_left_out, list_unconsidered
from eastgate.cluster.unread.model import Unread
from eastgate.reports.cluster import Cluster
from eastgate.reports.graph.build import app_of
from eastgate.reports.graph.model import Bundle, Graph, NodeKind, ReachVerdict
from eastgate.reports.graph.text import limit, natural

_MAX_PODS = 6  # pods that are named


def list_notes(cluster: Cluster, points: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each object that could change an answer about some points."""
    authority = cluster.authority
    for policy in cluster.rejected_at(points):
        yield f"{policy.ref} cannot be read: its targets are shown as closed"
    unconsidered = cluster.unconsidered(points)
    yield from list_left_out(unconsidered.matches)
    for line in list_unconsidered(unconsidered, authority.unread, about_one=False):
        yield f"not considered: {line}"
    if authority.unread is not Handling.IGNORE:
        for unread in dict.fromkeys(met.unread for met in could_change(unconsidered, allowed=True)):
            pods = sorted(_selected(cluster, unread), key=natural) if unread.part is None else []
            if pods and unread.targets.located:
                named = ", ".join(limit(pods, _MAX_PODS))
                yield f"{unread} could deny edges that are marked allow? or depends?: it is about {named}"
    uncertain = {policy.ref: point for point in points for policy in programs_of(authority).uncertain(point)}
    for ref, point in uncertain.items():
        yield f"{ref} selects by a label that only a cluster adds: it is assumed not to target {point}"
    yield from _enforcement_notes(cluster, points)


def _enforcement_notes(cluster: Cluster, points: Sequence[Point]) -> Iterator[str]:
    """Yield the pods that a policy selects but cannot apply to, and those whose enforcer is unknown."""
    found = [each for point in points if isinstance(point, str) for each in cluster.enforcement(point)]
    yield from inapplicable_lines(found)
    doubtful: dict[str, dict[str, None]] = {}
    for each in found:
        if each.choices:
            decides = f"--set {each.setting}={'|'.join(each.choices)}"
            doubtful.setdefault(decides, {})[each.at.removeprefix("pod ")] = None
    for decides, pods in doubtful.items():
        named = ", ".join(limit(sorted(pods, key=natural), _MAX_PODS))
        yield f"no manifest says whether {named} has a proxy: an allowed edge needs both possibilities ({decides})"


def _selected(cluster: Cluster, unread: Unread) -> Iterator[str]:
    """Yield the workloads that an object of an unread kind targets, as a destination or as a caller."""
    world = cluster.authority.world
    targets = (*unread.targets.destinations, *unread.targets.callers)
    for workload in world.workloads.values():
        if any(world.target_matches(target, workload) for target in targets):
            yield workload.key


def mark_doubts(cluster: Cluster, graph: Graph) -> Graph:
    """Mark the edges that an unread policy could change. Bundles are split accordingly."""
    authority = cluster.authority
    if authority.unread is Handling.IGNORE or not authority.unread_objects.objects:
        return graph
    doubts = _Doubts(cluster, graph)
    return replace(graph, bundles=tuple(part for bundle in graph.bundles for part in doubts.split(bundle)))


class _Doubts:
    """The policies of unread kinds that could change the verdict at either end of an edge."""

    def __init__(self, cluster: Cluster, graph: Graph) -> None:
        self._authority = cluster.authority
        self._graph = graph
        self._found: dict[tuple[str, bool, bool], tuple[str, ...]] = {}

    def split(self, bundle: Bundle) -> Iterator[Bundle]:
        """Yield a bundle in parts, each with its doubts."""
        is_allowed = bundle.verdict is not ReachVerdict.DENY
        for before, sources in _grouped(bundle.sources, lambda name: self._at(name, is_allowed, is_target=False)):
            for behind, targets in _grouped(bundle.targets, lambda name: self._at(name, is_allowed, is_target=True)):
                doubts = tuple(dict.fromkeys((*before, *behind)))
                yield replace(bundle, sources=sources, targets=targets, doubts=doubts)

    def _at(self, name: str, is_allowed: bool, *, is_target: bool) -> tuple[str, ...]:
        key = name, is_allowed, is_target
        if key not in self._found:
            self._found[key] = tuple(self._find(name, is_allowed, is_target=is_target))
        return self._found[key]

    def _find(self, name: str, is_allowed: bool, *, is_target: bool) -> Iterator[str]:
        world, objects = self._authority.world, self._authority.unread_objects
        node = self._graph.nodes.get(name)
        pods = [each for each in world.workloads.values() if _is_in(each, name)]
        points: list[Point] = [each.key for each in pods] if is_target else []
        callers = Callers()
        if not is_target:
            home = node.namespace if node is not None and not pods else None
            is_crowd = node is not None and node.kind in (NodeKind.ANYONE, NodeKind.NAMESPACE)
            callers = Callers(tuple(pods), home, anybody=is_crowd)
        met = could_change(objects.about(points, callers, world), allowed=is_allowed)
        return (str(each.unread) for each in met)


def _is_in(workload: Workload, name: str) -> bool:
    """Return whether a node is a workload, or a group that contains it."""
    kind, _, key = name.partition(":")
    match kind:
        case "pod":
            return workload.key == key
        case "sa":
            return f"{workload.namespace}/{workload.service_account}" == key
        case "app":
            return f"{workload.namespace}/{app_of(workload)}" == key
        case "namespace":
            return workload.namespace == key
        case _:
            return False


def _grouped(
    names: Iterable[str], doubts: Callable[[str], tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    by_doubts: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        by_doubts.setdefault(doubts(name), []).append(name)
    return ((found, tuple(members)) for found, members in by_doubts.items())
