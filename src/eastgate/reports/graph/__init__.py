"""Who can reach whom, as a graph: found out (`build`), put together (`aggregate`), and rendered in many forms."""

from eastgate.reports.graph.aggregate import Grouping
from eastgate.reports.graph.build import Survey, survey
from eastgate.reports.graph.making import make_graph
from eastgate.reports.graph.model import Bundle, Edge, Graph, Node, NodeKind, ReachVerdict, Way
from eastgate.reports.graph.rendering import FORMATS, render
from eastgate.reports.graph.selection import Selection

__all__ = [
    "FORMATS",
    "Bundle",
    "Edge",
    "Graph",
    "Grouping",
    "Node",
    "NodeKind",
    "ReachVerdict",
    "Selection",
    "Survey",
    "Way",
    "make_graph",
    "render",
    "survey",
]
