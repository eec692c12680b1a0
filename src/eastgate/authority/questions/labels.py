"""Labels that distinguish pods: those that selectors look at, and unknown labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eastgate.authority.questions.senders import Receiver
from eastgate.cluster import (
    PodsAcross,
    PodsMatching,
    Workload,
    World,
)
from eastgate.cluster.points import Direction, NetworkEnd, Point
from eastgate.dialects import Policy
from eastgate.engine.programs import Programs
from eastgate.ir import (
    ALWAYS,
    NEVER,
    Computed,
    Is,
    Labelled,
    Layer,
    Predicate,
    atoms,
    labels_text,
    rewrite,
)
from eastgate.ir.attributes import (
    DESTINATION_LABELS,
    DESTINATION_NAMESPACE,
    SOURCE_LABELS,
    SOURCE_NAMESPACE,
)


def selectors_about(programs: Programs[Policy], world: World, receiver: Receiver, namespace: str) -> Iterator[Labelled]:
    """Yield the selectors that distinguish the pods of a namespace, as subjects and as peers of a receiver."""
    for target in (target for policy in programs.network_policies for target in policy.targets):
        match target:
            case PodsMatching(home, selector) if home == namespace:
                yield Labelled(selector)
            case PodsAcross(namespaces, pods) if namespaces.matches(world.namespace(namespace).labels):
                yield Labelled(pods)
    if receiver.end is not None:
        for layer in programs.program(receiver.end).layers:
            for atom in layer.atoms(observed=True):
                if isinstance(atom, Is) and atom.attribute == SOURCE_LABELS and isinstance(atom.matcher, Labelled):
                    yield atom.matcher


def unlabelled_peer(
    programs: Programs[Policy], world: World, points: Iterable[Point]
) -> tuple[NetworkEnd, Policy] | None:
    """Return an end with unknown labels, and a policy of the other end that depends on them.

    A cluster adds labels to the pods of templates, and policies may select peers by such labels.
    """
    ends_of_it = {point.direction: point for point in points if isinstance(point, NetworkEnd)}
    for direction, end in ends_of_it.items():
        workload = world.workloads.get(end.workload)
        other = ends_of_it.get(Direction.INGRESS if direction is Direction.EGRESS else Direction.EGRESS)
        if workload is None or not workload.derived or other is None:
            continue
        for attachment in programs.attached(other):
            layers = programs.layers_of(attachment.policy, other.direction)
            if any(_may_be_selected(layer, workload, direction, world) for layer in layers):
                return end, attachment.policy
    return None


def _may_be_selected(layer: Layer, workload: Workload, direction: Direction, world: World) -> bool:
    """Return whether rules of a layer look at labels that pods of a template may or may not have."""
    home, labels = (
        (SOURCE_NAMESPACE, SOURCE_LABELS)
        if direction is Direction.EGRESS
        else (DESTINATION_NAMESPACE, DESTINATION_LABELS)
    )
    namespace = labels_text(world.namespace(workload.namespace).labels)

    def settle(atom: Is | Computed) -> Predicate:
        if not isinstance(atom, Is) or atom.attribute != home:
            return atom
        return ALWAYS if atom.accepts(namespace) else NEVER

    rules = (rule for chain in layer.chains for rule in chain.rules(observed=False))
    return any(
        isinstance(atom, Is)
        and atom.attribute == labels
        and isinstance(atom.matcher, Labelled)
        and atom.matcher.selector.may_match(workload.labels)
        for rule in rules
        for atom in atoms(rewrite(rule.when, settle))
    )
