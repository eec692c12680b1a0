"""A graph as a table, and as comma-separated values."""

from __future__ import annotations

import csv
import io
from textwrap import wrap

from eastgate.diagnostics.printable import printable
from eastgate.reports.columns import Line, Lines, columns, lay_out
from eastgate.reports.graph.model import Bundle, Graph
from eastgate.reports.graph.words import limit, ports_of, rule_lines, sources_of

__all__ = ["to_csv", "to_text"]

_MOST_NAMES = 6  # in one cell
_MOST_LINES = 12  # of conditions in one cell
_WIDTH = 60
_FIELDS = (
    "from",
    "to",
    "port",
    "verdict",
    "condition",
    "policy",
    "rule",
    "file",
    "line",
    "service",
    "leadsTo",
    "exceptPorts",
)


def to_text(graph: Graph, *, why: bool = False, width: int | None = None, color: bool = False) -> str:
    """Render a graph as a table, a row for each bundle of edges."""
    headers = ["FROM", "TO", "PORT", "VERDICT", "IF", "BY"]
    rows = [_row(bundle, graph) for bundle in graph.bundles]
    kept = [at for at, header in enumerate(headers) if header != "BY" or why]
    if not any(row[4] for row in rows):
        kept.remove(4)
    lines: list[Line] = columns([headers[at] for at in kept], [[row[at] for at in kept] for row in rows])
    lines = lines or ["nobody can reach anything that is asked about"]
    lines += [f"note: {note}" for note in graph.notes]
    return "\n".join(lay_out(lines, width, color=color))


def _row(bundle: Bundle, graph: Graph) -> list[Lines]:
    to = limit(bundle.targets, _MOST_NAMES)
    to += [f"  by {service}" for service in ([f"service:{bundle.service}"] if bundle.service else [])]
    to += [f"  -> {name}" for name in bundle.leads_to]
    conditions = [
        line for way in bundle.ways if way.condition and bundle.condition for line in wrap(way.condition, _WIDTH)
    ]
    return [
        limit(sources_of(bundle, graph), _MOST_NAMES),
        to,
        [ports_of(bundle)],
        [str(bundle.verdict)],
        limit(conditions, _MOST_LINES),
        limit([line for origin in bundle.deciders for line in rule_lines(origin)] or ["no policy"], _MOST_LINES),
    ]


def to_csv(graph: Graph) -> str:
    """Render a graph as comma-separated values, a line for each edge."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _FIELDS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for edge in graph.edges:
        data = edge.to_json()
        for name in ("leadsTo", "exceptPorts"):
            listed = data.get(name)
            data[name] = " ".join(map(str, listed)) if isinstance(listed, list) else ""
        writer.writerow({field: _cell(data.get(field)) for field in _FIELDS})
    return text.getvalue()


def _cell(value: object) -> str:
    return "" if value is None else printable(str(value))
