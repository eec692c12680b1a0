"""A graph as a table, and as comma-separated values."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from textwrap import wrap

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.regexes import regex
from eastgate.ir import Origin, labels_of
from eastgate.ir.symbolic.cells import OTHER
from eastgate.reports.columns import Line, Lines, columns, lay_out
from eastgate.reports.effective.words import ANY_IDENTITY, ANYONE, ports_text
from eastgate.reports.graph.model import Bundle, Graph, GraphNode, NodeKind

# Short texts for the callers, ports and rules of edges, for tables and pictures.


_MAX_EXCEPTIONS = 3  # callers that are listed as exceptions
_NUMBERED = regex(r"(\D*)(\d*)")
_MIN_CALLERS_FOR_EXCEPTIONS = 4  # with fewer callers, they are listed instead of the exceptions


def sources_of(bundle: Bundle, graph: Graph) -> list[str]:
    """Return the callers of a bundle, each as one entry. Nearly all callers are one entry that names the exceptions."""
    everybody = graph.everybody
    if not everybody or len(bundle.sources) < _MIN_CALLERS_FOR_EXCEPTIONS:
        return list(bundle.sources)
    chosen = set(bundle.sources)
    missing = [name for name in everybody if name not in chosen]
    if not missing:
        return [ANYONE]
    if missing == ["anonymous"]:
        return [ANY_IDENTITY]
    if len(missing) <= _MAX_EXCEPTIONS and 2 * len(missing) <= len(chosen):
        return [f"{ANYONE} but {', '.join(missing)}"]
    return list(bundle.sources)


def caller_names(bundle: Bundle, graph: Graph) -> list[str]:
    """Return the names of the callers of a row. A workload that calls itself is another of its replicas."""
    names = sources_of(bundle, graph)
    is_workload = len(names) == 1 and names[0].startswith("pod:") and graph.by_pod
    is_replica = is_workload and tuple(names) == bundle.targets and bundle.condition is None
    return [f"{name} (another replica)" for name in names] if is_replica else names


def target_names(bundle: Bundle, graph: Graph) -> list[str]:
    """Return the names of the destinations of a row. Many pods that are all pods of a namespace are `pod:NS/*`."""
    homes: dict[str, set[str]] = defaultdict(set)
    for node in graph.nodes.values() if graph.is_whole and len(bundle.targets) > _MIN_CALLERS_FOR_EXCEPTIONS else ():
        if node.kind is NodeKind.POD:
            homes[str(node.namespace)].add(node.id)
    whole = {
        home: pods for home, pods in homes.items() if len(pods) > _MAX_EXCEPTIONS and pods.issubset(bundle.targets)
    }
    covered = {name for pods in whole.values() for name in pods}
    names = [f"pod:{home}/*" for home in whole] + [name for name in bundle.targets if name not in covered]
    return sorted(names, key=natural)


def is_wide(name: str, graph: Graph) -> bool:
    """Return whether a name covers callers of every namespace, or from outside the cluster."""
    node = graph.nodes.get(name)
    return node is None or node.kind is NodeKind.ANYONE or (node.namespace is None and node.kind is not NodeKind.SPIFFE)


def ports_of(bundle: Bundle) -> str:
    """Return the ports of a bundle: `any`, `any other`, `any but` the closed ones, or numbers."""
    numbers = ports_text(bundle.ports, others=False, alone=False)
    if not bundle.other_ports:
        return numbers
    if bundle.any_port:
        return "any"
    if bundle.port_ranges:
        ranges = [f"{first}-{last}" if first < last else str(first) for first, last in bundle.port_ranges]
        return ", ".join([*([numbers] if numbers else []), *ranges])
    other = "any other" if numbers or not bundle.closed_ports else "any"
    closed = ports_text(bundle.closed_ports, others=False, alone=False)
    other = f"{other} but {closed}" if closed else other
    return f"{numbers}, {other}" if numbers else other


def name_ports(bundle: Bundle) -> str:
    """Return the ports of a bundle as a text for a sentence: `port 8080`, `any port`."""
    if bundle.port_ranges:
        return f"ports {ports_of(bundle)}"
    if bundle.any_port or not bundle.ports:
        return f"{ports_of(bundle)} port"
    return f"port{'s' if len(bundle.ports) > 1 else ''} {ports_of(bundle)}"


def rule_lines(origin: Origin) -> list[str]:
    """Return a rule and its line."""
    return [str(origin), *([f"  {origin.span.location}"] if origin.span is not None else [])]


def rule_name(origin: Origin) -> str:
    """Return a rule with its line on one line of text."""
    where = f" ({origin.span.location})" if origin.span is not None else ""
    return f"{origin}{where}"


def short_rule(origin: Origin) -> str:
    """Return the line of a rule without folders, then the rule: if the text is cut, the line remains."""
    if origin.span is None:
        return str(origin)
    return f"{PurePath(origin.span.file).name}:{origin.span.line} {origin}"


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Return a key that sorts names as people do: ns2 comes before ns10."""
    return tuple((word, int(digits or 0)) for word, digits in _NUMBERED.findall(text))


def labels_words(labels: str) -> str:
    """Return the text for the labels of a kind of pods or namespaces."""
    pairs = labels_of(labels).items()
    texts = [f"another {key}" if OTHER in value else f"{key}={value}" for key, value in pairs]
    return ", ".join(texts) or "none of the labels that policies name"


def limit(texts: Sequence[str], most: int) -> list[str]:
    """Return the first texts, and the number of the others."""
    return list(texts) if len(texts) <= most else [*texts[:most], f"... and {len(texts) - most} more"]


_MAX_NAMES = 6  # in one cell
_MAX_CONDITION_LINES = 12  # in one cell
_CONDITION_CHARS = 60
_MAX_PAIR_ROWS = 200  # pairs of one bundle that get a row each
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
    """Render a graph as a table with a row for each bundle of edges. `full`: cells are never shortened."""
    headers = ["FROM", "TO", "PORT", "VERDICT", "IF", "BY"]
    rows = [_row(bundle, graph, full=full) for bundle in list_rows(graph)]
    kept = [at for at, header in enumerate(headers) if header != "BY" or why]
    if not any(row[4] for row in rows):
        kept.remove(4)
    lines: list[Line] = columns([headers[at] for at in kept], [[row[at] for at in kept] for row in rows])
    lines = lines or ["no selected caller can reach a selected destination"]
    if graph.preface is not None:
        lines.insert(0, graph.preface)
    lines += list_sections(graph, full=full)
    lines += [f"note: {printable(note)}" for note in graph.notes]
    return "\n".join(lay_out(lines, width, color=color))


def list_rows(graph: Graph) -> Iterator[Bundle]:
    """Yield a row for each pair of workloads.

    Rows of sets such as `anyone`, and of graphs by account, are not split.
    """
    for bundle in graph.bundles:
        if bundle.is_open_egress:
            continue  # a section lists them
        pods = [name for name in bundle.sources if graph.by_pod and name in graph.nodes and name.startswith("pod:")]
        if not pods or len(pods) * len(bundle.targets) > _MAX_PAIR_ROWS:
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
    if len(names) == len(pods) and len(names) > _MAX_NAMES and not full:
        return f"all {len(names)} workloads"
    keys = [name.partition(":")[2] or name for name in sorted(names, key=natural)]
    return ", ".join(_limit(keys, 2 * _MAX_NAMES, full=full))


def _limit(texts: Sequence[str], most: int, *, full: bool) -> list[str]:
    """Return the first texts, the number of the others, and the option that shows all."""
    limited = limit(texts, most)
    return list(texts) if full else limited if len(limited) == len(texts) else [*limited[:-1], f"{limited[-1]} (-v)"]


def _row(bundle: Bundle, graph: Graph, *, full: bool) -> list[Lines]:
    callers = caller_names(bundle, graph)
    if len(callers) > _MAX_NAMES:
        callers.sort(key=lambda name: not is_wide(name, graph))  # the widest names are shown first
    to = _limit(target_names(bundle, graph), _MAX_NAMES, full=full)
    to += [f"  by {service}" for service in ([f"service:{bundle.service}"] if bundle.service else [])]
    to += [f"  -> {name}" for name in bundle.leads_to]
    conditions = [
        line
        for way in bundle.ways
        if way.condition and bundle.condition
        for line in wrap(way.condition, _CONDITION_CHARS)
    ]
    rules = [line for origin in bundle.deciders for line in rule_lines(origin)] or ["no policy"]
    return [
        _limit(callers, _MAX_NAMES, full=full),
        to,
        [ports_of(bundle)],
        [bundle.verdict_text],
        _limit(conditions, _MAX_CONDITION_LINES, full=full),
        _limit(rules, _MAX_CONDITION_LINES, full=full),
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
