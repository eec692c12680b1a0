"""The access graph between callers and destinations, which `Authority.graph` returns."""

from eastgate.basics.public import publish
from eastgate.reports.graph import AllowedWay, Bundle, Edge, Graph, GraphNode, NodeKind, Pairs, ReachVerdict, render

__all__ = ["AllowedWay", "Bundle", "Edge", "Graph", "GraphNode", "NodeKind", "Pairs", "ReachVerdict", "render"]

publish(globals())
