"""Namespaces that do not exist yet: the pods in them that a workload would accept, by the labels that policies name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from eastgate.authority.authority import programs_of
from eastgate.authority.questions.senders import Sender, receive
from eastgate.cluster import PodsAcross, Workload
from eastgate.cluster.objects import NAME_LABEL
from eastgate.cluster.points import Direction, NetworkEnd
from eastgate.ir import Is, Labelled, Origin, labels_of, labels_text
from eastgate.ir.attributes import PORT, SOURCE_LABELS, SOURCE_NAMESPACE, Attribute
from eastgate.ir.symbolic.cells import OTHER, cells_of_attributes
from eastgate.reach.network import network_reach
from eastgate.reports.cluster import effects_of
from eastgate.reports.connections import selector_text
from eastgate.reports.graph.build import Survey
from eastgate.reports.graph.model import AllowedWay, Bundle, GraphNode, NodeKind, ReachVerdict
from eastgate.reports.graph.reached import DestinationVerdicts
from eastgate.reports.graph.selection import PortSet, port_sets, union, with_ports
from eastgate.reports.graph.text import labels_words

_Accepts = tuple[PortSet, Origin | None]  # ports, and the rule that accepts connections to them
_Accepted = dict[str, frozenset[_Accepts]]  # by the labels of pods

_UNNAMED = "any-other"  # a namespace without labels; other rows cover it


class FutureNamespaces:
    """Rows for pods in namespaces that no manifest declares, and that policies select by labels."""

    def __init__(self, surveyed: Survey, *, why: bool) -> None:
        self._found = surveyed
        self._why = why
        self._authority = surveyed.reach.authority
        self.nodes: dict[str, GraphNode] = {}

    @cached_property
    def _is_asked(self) -> bool:
        """Return whether the selection includes such rows, and only the policies of the receiver decide about them."""
        engine = programs_of(self._authority)
        across = [
            policy
            for policy in engine.network_policies
            if any(isinstance(target, PodsAcross) for target in policy.targets)
        ]
        return self._found.has_all_callers and not any(engine.layers_of(each, Direction.EGRESS) for each in across)

    def bundles(self, reached: DestinationVerdicts) -> Iterator[Bundle]:
        """Yield the rows of one destination."""
        world, engine = self._authority.world, programs_of(self._authority)
        workload = world.workloads[reached.destination.members[0]]
        wanted = self._found.selection.namespace
        members = tuple(name for name in reached.members if wanted in (None, self._found.targets[name].namespace))
        if not self._is_asked or not members or workload.host_network or not workload.is_pod:
            return
        if effects_of(engine.program(workload.key).layers).enforced:
            return  # identities decide too
        namespaces = self._selectors(workload, SOURCE_NAMESPACE)
        pods = self._selectors(workload, SOURCE_LABELS)
        existing = {
            _truths(namespaces, labels_text(world.namespace(name).labels))
            for name in (*world.namespaces_in_use(), _UNNAMED)
        }
        new = [
            labels
            for labels in _kinds(SOURCE_NAMESPACE, namespaces)
            if _truths(namespaces, labels) not in existing
            and labels_of(labels).get(NAME_LABEL) not in world.namespaces_in_use()
        ]
        rows: dict[str, _Accepted] = {}
        for home in new:
            for labels in _kinds(SOURCE_LABELS, pods):
                sender = Sender({SOURCE_NAMESPACE: home, SOURCE_LABELS: labels})
                rows.setdefault(home, {})[labels] = self._ports(sender, workload, reached)
        for home, accepted in _shortest(rows, namespaces):
            for ports in dict.fromkeys(each for each in accepted.values() if each):
                kinds = [labels for labels, allowed in accepted.items() if allowed >= ports]
                for text in _pods_named(kinds, list(accepted), pods):
                    node = GraphNode(f"{home}/[{text}]", NodeKind.FUTURE_PODS)
                    self.nodes[node.id] = node
                    yield self._bundle(node, members, ports)

    def _selectors(self, workload: Workload, attribute: Attribute) -> list[Labelled]:
        layers = programs_of(self._authority).program(NetworkEnd(workload.key, Direction.INGRESS)).layers
        asked = (atom for layer in layers for atom in layer.atoms(observed=False))
        matchers = (atom.matcher for atom in asked if isinstance(atom, Is) and atom.attribute == attribute)
        return list(dict.fromkeys(matcher for matcher in matchers if isinstance(matcher, Labelled)))

    def _ports(self, sender: Sender, workload: Workload, reached: DestinationVerdicts) -> frozenset[_Accepts]:
        """Return the ports that a sender may connect to."""
        network = network_reach(self._authority)
        accepted: set[_Accepts] = set()
        for entrance, ports in port_sets(reached.destination, self._found.selection.port):
            port = entrance.facts.values[PORT]
            if isinstance(port, int):
                passes, origin = network.decide(sender, receive(workload, self._authority.world, port), port)
                accepted.update([(ports, origin if self._why else None)] if passes else [])
        return frozenset(accepted)

    def _bundle(self, node: GraphNode, members: tuple[str, ...], accepted: frozenset[_Accepts]) -> Bundle:
        rules = tuple(dict.fromkeys(rule for _, rule in accepted if rule is not None))
        ways = (AllowedWay(None, rules),)
        ports = union(stretch for stretches, _ in accepted for stretch in stretches)
        return with_ports(Bundle((node.id,), members, (), False, ReachVerdict.ALLOW, ways), ports)


def _kinds(attribute: Attribute, selectors: Sequence[Labelled]) -> list[str]:
    """Return labels of each kind that selectors distinguish; none if there are too many kinds."""
    cells, is_all = cells_of_attributes([Is(attribute, matcher) for matcher in selectors], [attribute])
    kinds = [text for text in cells[attribute] if isinstance(text, str) and text != OTHER]
    return (kinds or [""]) if is_all else []


def _truths(selectors: Iterable[Labelled], labels: str) -> tuple[bool, ...]:
    return tuple(selector.contains(labels) for selector in selectors)


def _shortest(rows: dict[str, _Accepted], selectors: Sequence[Labelled]) -> Iterator[tuple[str, _Accepted]]:
    """Yield new namespaces by the shortest selector with the same outcome. Longer ones add nothing."""
    left = {home: accepted for home, accepted in rows.items() if any(accepted.values())}
    for selector in sorted(selectors, key=lambda each: (len(each.selector.keys), str(each))):
        chosen = [home for home in rows if selector.contains(home)]
        least = [rows[home] for home in chosen if home in left]
        if not least:
            continue
        common = {labels: frozenset.intersection(*(each[labels] for each in least)) for labels in least[0]}
        if any(common.values()):
            yield _namespace_name(selector), common
            left = {home: accepted for home, accepted in left.items() if home not in chosen or accepted != common}
    yield from ((f"[namespaces with {labels_words(home)}]", accepted) for home, accepted in left.items() if home)


def _namespace_name(selector: Labelled) -> str:
    equal = dict(selector.selector.match_labels)
    if equal.keys() == {NAME_LABEL} and not selector.selector.expressions:
        return equal[NAME_LABEL]
    return f"[namespaces with {selector_text(selector.selector)}]"


def _pods_named(kinds: Sequence[str], every: Sequence[str], selectors: Sequence[Labelled]) -> Iterator[str]:
    if len(kinds) == len(every):
        yield "all pods"
        return
    left = set(kinds)
    for selector in sorted(selectors, key=str):
        covered = {labels for labels in every if selector.contains(labels)}
        if covered and covered <= set(kinds) and covered & left:
            yield f"pods with {selector_text(selector.selector)}"
            left -= covered
    yield from (f"pods with {labels_words(labels)}" for labels in sorted(left) if labels_of(labels))
