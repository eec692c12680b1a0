"""Callers, ports and rules of edges in few words, for tables and pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePath

from eastgate.basics.regexes import regex
from eastgate.ir import Origin, labels_of
from eastgate.ir.symbolic.cells import OTHER
from eastgate.reports.effective.words import ANY_IDENTITY, ANYONE, ports_text
from eastgate.reports.graph.model import Bundle, Graph, NodeKind

_FEW = 3  # callers that are left out by name
_NUMBERED = regex(r"(\D*)(\d*)")
_MANY = 4  # callers that are listed rather than those who are missing


def sources_of(bundle: Bundle, graph: Graph) -> list[str]:
    """Return the callers of a bundle, each as one entry; nearly all of them by those who are missing."""
    everybody = graph.everybody
    if not everybody or len(bundle.sources) < _MANY:
        return list(bundle.sources)
    chosen = set(bundle.sources)
    missing = [name for name in everybody if name not in chosen]
    if not missing:
        return [ANYONE]
    if missing == ["anonymous"]:
        return [ANY_IDENTITY]
    if len(missing) <= _FEW and 2 * len(missing) <= len(chosen):
        return [f"{ANYONE} but {', '.join(missing)}"]
    return list(bundle.sources)


def caller_names(bundle: Bundle, graph: Graph) -> list[str]:
    """Return the callers of a row as tables name them: a workload that calls itself is another of its replicas."""
    names = sources_of(bundle, graph)
    is_workload = len(names) == 1 and names[0].startswith("pod:") and graph.by_pod
    is_replica = is_workload and tuple(names) == bundle.targets and bundle.condition is None
    return [f"{name} (another replica)" for name in names] if is_replica else names


def target_names(bundle: Bundle, graph: Graph) -> list[str]:
    """Return the destinations of a row as tables name them: many pods that are all of a namespace are `pod:NS/*`."""
    homes: dict[str, set[str]] = defaultdict(set)
    for node in graph.nodes.values() if graph.is_whole and len(bundle.targets) > _MANY else ():
        if node.kind is NodeKind.POD:
            homes[str(node.namespace)].add(node.id)
    whole = {home: pods for home, pods in homes.items() if len(pods) > _FEW and pods.issubset(bundle.targets)}
    covered = {name for pods in whole.values() for name in pods}
    names = [f"pod:{home}/*" for home in whole] + [name for name in bundle.targets if name not in covered]
    return sorted(names, key=natural)


def is_wide(name: str, graph: Graph) -> bool:
    """Return whether a name stands for callers of every namespace, or from outside the cluster."""
    node = graph.nodes.get(name)
    return node is None or node.kind is NodeKind.ANYONE or (node.namespace is None and node.kind is not NodeKind.SPIFFE)


def ports_of(bundle: Bundle) -> str:
    """Return the ports of a bundle: `any`, `any other`, `any but` those that are closed, or numbers."""
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
    """Return the ports of a bundle as a text that stands alone: `port 8080`, `any port`."""
    if bundle.port_ranges:
        return f"ports {ports_of(bundle)}"
    if bundle.any_port or not bundle.ports:
        return f"{ports_of(bundle)} port"
    return f"port{'s' if len(bundle.ports) > 1 else ''} {ports_of(bundle)}"


def rule_lines(origin: Origin) -> list[str]:
    """Return a rule, and the line where it is written."""
    return [str(origin), *([f"  {origin.span.location}"] if origin.span is not None else [])]


def rule_name(origin: Origin) -> str:
    """Return a rule with the line where it is written."""
    where = f" ({origin.span.location})" if origin.span is not None else ""
    return f"{origin}{where}"


def short_rule(origin: Origin) -> str:
    """Return the line where a rule is written, without folders, and the rule: the first is what must not be cut off."""
    if origin.span is None:
        return str(origin)
    return f"{PurePath(origin.span.file).name}:{origin.span.line} {origin}"


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Return a key that sorts names as people do: ns2 comes before ns10."""
    return tuple((word, int(digits or 0)) for word, digits in _NUMBERED.findall(text))


def labels_words(labels: str) -> str:
    """Return the labels of a kind of pods or namespaces in words."""
    pairs = labels_of(labels).items()
    texts = [f"another {key}" if OTHER in value else f"{key}={value}" for key, value in pairs]
    return ", ".join(texts) or "none of the labels that policies name"


def limit(texts: Sequence[str], most: int) -> list[str]:
    """Return the first of some texts, and how many more there are."""
    return list(texts) if len(texts) <= most else [*texts[:most], f"... and {len(texts) - most} more"]
