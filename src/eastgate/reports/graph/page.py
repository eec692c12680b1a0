"""A graph as one page that needs nothing else."""

from __future__ import annotations

from eastgate.reports.graph.model import Graph
from eastgate.reports.graph.svg import STYLE, draw

__all__ = ["to_html"]


def to_html(graph: Graph, *, why: bool) -> str:
    return f"<!doctype html><style>{STYLE}</style>{draw(graph, why=why)}"
