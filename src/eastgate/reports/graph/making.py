"""The graph that is asked for: of single callers and destinations, or of groups where they are too many."""

from __future__ import annotations

from dataclasses import replace

from eastgate.reports.graph.aggregate import Grouping, count_groups, group_graph
from eastgate.reports.graph.build import Survey, list_graph
from eastgate.reports.graph.model import Graph

__all__ = ["MOST_NODES", "make_graph"]

MOST_NODES = 120  # that a picture has room for


def make_graph(surveyed: Survey, by: Grouping | None = None, *, why: bool = True, most: int | None = None) -> Graph:
    """Return the graph of a survey. Without a grouping, there are at most so many nodes, put together as need be."""
    if by is not None:
        return _grouped(surveyed, by, why=why)
    graph = _grouped(surveyed, Grouping.WORKLOAD, why=why)
    if most is None or len(graph.nodes) <= most:
        return graph
    every = len(graph.nodes)
    coarser = Grouping.APP if count_groups(surveyed, Grouping.APP) <= most else Grouping.NAMESPACE
    graph = group_graph(surveyed, coarser)
    note = f"{every} callers and destinations are too many for a picture: they are put together by {coarser} (--by)"
    return replace(graph, notes=(*graph.notes, note))


def _grouped(surveyed: Survey, by: Grouping, *, why: bool) -> Graph:
    return list_graph(surveyed, why=why) if by is Grouping.WORKLOAD else group_graph(surveyed, by)
