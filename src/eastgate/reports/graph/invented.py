"""The graph of policies without workloads: the callers that the policies admit to the pods that they select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from eastgate.authority.authority import Authority
from eastgate.basics.diagnostics.printable import printable
from eastgate.reports.graph.model import Bundle, Graph, GraphNode, NodeKind
from eastgate.reports.invented import Invention, has_no_workloads, invent

_PREFACE = "no workload is declared: destinations are the pods that policies select"


def worlds_of(authority: Authority) -> Iterator[Invention | None]:
    """Yield the worlds of a graph.

    The world is in force until the next one is yielded; None is the world of the manifests.
    """
    inventions = [each for each in invent(authority) if each.targeted] if has_no_workloads(authority) else []
    if not inventions:
        yield None
    for each in inventions:
        with each.imagined(authority, targeted=True):
            yield each


def name_invented(graph: Graph, invention: Invention | None) -> Graph:
    """Return a graph that names invented pods by their labels and leaves out their accounts."""
    if invention is None:
        return graph
    names = {f"{kind}:{key}": _name(key, invention) for key in invention.pods for kind in ("pod", "app")}
    gone = frozenset(invention.accounts)
    nodes = {names.get(name, name): _renamed(node, names) for name, node in graph.nodes.items() if name not in gone}
    bundles = [_bundle(bundle, names, gone) for bundle in graph.bundles]
    ports = [
        f"port {number} is the number for the port name {printable(name)}" for number, name in invention.ports.items()
    ]
    return replace(
        graph,
        nodes=nodes,
        bundles=tuple(dict.fromkeys(each for each in bundles if each is not None)),
        everybody=tuple(name for name in graph.everybody if name not in gone),
        notes=(*(invention.in_words(note) for note in graph.notes), *ports),
        preface=_PREFACE,
    )


def join(graphs: Sequence[Graph]) -> Graph:
    """Merge the graphs of workloads that cannot exist together."""
    if len(graphs) == 1:
        return graphs[0]
    nodes = {name: node for graph in graphs for name, node in graph.nodes.items()}
    bundles = dict.fromkeys(bundle for graph in graphs for bundle in graph.bundles)
    notes = dict.fromkeys(note for graph in graphs for note in graph.notes)
    left_out = dict.fromkeys(part for graph in graphs for part in graph.left_out)
    return replace(graphs[0], nodes=nodes, bundles=tuple(bundles), notes=tuple(notes), left_out=tuple(left_out))


def _name(key: str, invention: Invention) -> str:
    namespace = invention.pods[key].namespace
    home = invention.home(namespace)
    return f"{home if home == namespace else f'[{home}]'}/[{invention.texts[key]}]"


def _renamed(node: GraphNode, names: Mapping[str, str]) -> GraphNode:
    if node.id not in names:
        return node
    return replace(node, id=names[node.id], kind=NodeKind.FUTURE_PODS, account=None, app=None)


def _bundle(bundle: Bundle, names: Mapping[str, str], gone: frozenset[str]) -> Bundle | None:
    """Rename the nodes of a bundle; return None if it has only invented accounts."""
    sources = tuple(dict.fromkeys(names.get(name, name) for name in bundle.sources if name not in gone))
    targets = tuple(dict.fromkeys(names.get(name, name) for name in bundle.targets if name not in gone))
    return replace(bundle, sources=sources, targets=targets) if sources and targets else None
