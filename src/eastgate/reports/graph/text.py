"""A graph as a table, and as comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap

from eastgate.basics.diagnostics.printable import printable
from eastgate.reports.columns import Line, Lines, columns, lay_out
from eastgate.reports.graph.model import Bundle, Graph, GraphNode, NodeKind
from eastgate.reports.graph.words import caller_names, is_wide, limit, natural, ports_of, rule_lines, target_names

_MOST_NAMES = 6  # in one cell
_MOST_LINES = 12  # of conditions in one cell
_WIDTH = 60
_MOST_PAIRS = 200  # of one bundle, that have a row each
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
    "unread",
)


def to_text(
    graph: Graph, *, why: bool = False, width: int | None = None, color: bool = False, full: bool = False
) -> str:
    """Render a graph as a table, a row for each bundle of edges. `full`: cells name everything, however much it is."""
    headers = ["FROM", "TO", "PORT", "VERDICT", "IF", "BY"]
    rows = [_row(bundle, graph, full=full) for bundle in list_rows(graph)]
    kept = [at for at, header in enumerate(headers) if header != "BY" or why]
    if not any(row[4] for row in rows):
        kept.remove(4)
    lines: list[Line] = columns([headers[at] for at in kept], [[row[at] for at in kept] for row in rows])
    lines = lines or ["nobody can reach anything that is asked about"]
    lines += list_sections(graph, full=full)
    lines += [f"note: {note}" for note in graph.notes]
    return "\n".join(lay_out(lines, width, color=color))


def list_rows(graph: Graph) -> Iterator[Bundle]:
    """Yield a row for each pair of workloads; rows of crowds, and of graphs by account, stay together."""
    for bundle in graph.bundles:
        if bundle.is_open_egress:
            continue  # a section lists them
        pods = [name for name in bundle.sources if graph.by_pod and name in graph.nodes and name.startswith("pod:")]
        if not pods or len(pods) * len(bundle.targets) > _MOST_PAIRS:
            yield bundle
            continue
        rest = tuple(name for name in bundle.sources if name not in pods)
        if len(bundle.targets) == 1 or not rest:
            yield from (replace(bundle, sources=(pod,), targets=(to,)) for to in bundle.targets for pod in pods)
            yield from (replace(bundle, sources=(name,)) for name in rest)
        else:
            yield bundle


def list_sections(graph: Graph, *, full: bool = False) -> Iterator[str]:
    """Yield the workloads that no policy protects, and those that may connect to any address."""
    pods = [node for node in graph.nodes.values() if node.kind is NodeKind.POD]
    bare = [node.id for node in pods if not node.is_protected]
    if bare:
        yield f"not protected by any policy: {_list(bare, pods, full=full)}"
    free = [name for bundle in graph.bundles if bundle.is_open_egress for name in bundle.sources]
    if free:
        yield f"egress to any address outside the cluster: {_list(free, pods, full=full)}"


def _list(names: Sequence[str], pods: Sequence[GraphNode], *, full: bool) -> str:
    if len(names) == len(pods) and len(names) > _MOST_NAMES and not full:
        return f"all {len(names)} workloads"
    keys = [name.partition(":")[2] for name in sorted(names, key=natural)]
    return ", ".join(_limit(keys, 2 * _MOST_NAMES, full=full))


def _limit(texts: Sequence[str], most: int, *, full: bool) -> list[str]:
    """Return the first of some texts, and how many more there are, and how to see them."""
    limited = limit(texts, most)
    return list(texts) if full else limited if len(limited) == len(texts) else [*limited[:-1], f"{limited[-1]} (-v)"]


def _row(bundle: Bundle, graph: Graph, *, full: bool) -> list[Lines]:
    callers = caller_names(bundle, graph)
    if len(callers) > _MOST_NAMES:
        callers.sort(key=lambda name: not is_wide(name, graph))  # the most important are not left out
    to = _limit(target_names(bundle, graph), _MOST_NAMES, full=full)
    to += [f"  by {service}" for service in ([f"service:{bundle.service}"] if bundle.service else [])]
    to += [f"  -> {name}" for name in bundle.leads_to]
    conditions = [
        line for way in bundle.ways if way.condition and bundle.condition for line in wrap(way.condition, _WIDTH)
    ]
    rules = [line for origin in bundle.deciders for line in rule_lines(origin)] or ["no policy"]
    return [
        _limit(callers, _MOST_NAMES, full=full),
        to,
        [ports_of(bundle)],
        [bundle.verdict_text],
        _limit(conditions, _MOST_LINES, full=full),
        _limit(rules, _MOST_LINES, full=full),
    ]


def to_csv(graph: Graph) -> str:
    """Render a graph as comma-separated values, a line for each edge."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _FIELDS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for edge in graph.edges:
        data = edge.to_json()
        for name in ("leadsTo", "exceptPorts", "unread"):
            listed = data.get(name)
            data[name] = " ".join(map(str, listed)) if isinstance(listed, list) else ""
        writer.writerow({field: _cell(data.get(field)) for field in _FIELDS})
    return text.getvalue()


def _cell(value: object) -> str:
    return "" if value is None else printable(str(value))
