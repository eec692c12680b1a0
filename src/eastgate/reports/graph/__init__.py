"""Graphs of callers and destinations: `build` finds the edges, `aggregate` groups them, and the others render them."""

from eastgate.reports.graph.aggregate import Grouping
from eastgate.reports.graph.build import Survey, survey
from eastgate.reports.graph.making import make_graph
from eastgate.reports.graph.model import AllowedWay, Bundle, Edge, Graph, GraphNode, NodeKind, Pairs, ReachVerdict
from eastgate.reports.graph.rendering import FORMATS, render
from eastgate.reports.graph.selection import GraphSelection

__all__ = [
    "FORMATS",
    "AllowedWay",
    "Bundle",
    "Edge",
    "Graph",
    "GraphNode",
    "GraphSelection",
    "Grouping",
    "NodeKind",
    "Pairs",
    "ReachVerdict",
    "Survey",
    "make_graph",
    "render",
    "survey",
]
