"""Checks of peers and ports whose meaning differs from what their text suggests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import PodsAcross, Workload, World
from eastgate.cluster.objects import NAME_LABEL
from eastgate.cluster.points import Direction
from eastgate.dialects.linting import Context, Finding, enumerated, locating
from eastgate.dialects.linting.codes import PORT_NOT_EXPOSED
from eastgate.dialects.linting.context import may_come
from eastgate.dialects.linting.locating import nearest_name
from eastgate.dialects.linting.system import (
    intended_label,
    intended_namespace,
    is_system_namespace,
    selects_system_namespace,
    selects_system_pods,
)
from eastgate.dialects.network import lint_codes as codes
from eastgate.dialects.network.lint_pods import SelectedPods
from eastgate.dialects.network.lowering import PEERS
from eastgate.dialects.network.model import NetworkPolicy, NetworkRule, Peer
from eastgate.dialects.network.values import Network
from eastgate.ir import InNetwork, Is, Labelled, Not, Predicate, conjuncts
from eastgate.ir.labels import Selector

_LABELLED = frozenset({"podSelector", "namespaceSelector", "namespaces", "pods"})
_SINGLE_FIELDS = {frozenset({"podSelector"}), frozenset({"namespaceSelector"})}


def _rules(pods: SelectedPods) -> Iterator[tuple[NetworkPolicy, Direction, NetworkRule]]:
    for policy in pods.by_policy:
        for direction, rules in policy.rules.items():
            yield from ((policy, direction, rule) for rule in rules)


def selectors_of(peer: Peer, direction: Direction) -> tuple[Selector, Selector] | None:
    """Return the selectors of a peer's namespaces and pods, or None for a peer with addresses."""
    end = PEERS[direction]
    by_attribute = {
        part.attribute: part.matcher.selector
        for part in conjuncts(peer.when)
        if isinstance(part, Is) and isinstance(part.matcher, Labelled)
    }
    namespaces = by_attribute.get(end.namespace)
    return None if namespaces is None else (namespaces, by_attribute.get(end.labels, Selector.of()))


def pods_of_peer(peer: Peer, direction: Direction, pods: SelectedPods) -> list[Workload]:
    """Return the pods that a peer selects by labels."""
    selectors = selectors_of(peer, direction)
    if selectors is None:
        return []
    return select_pods(*selectors, pods)


def select_pods(namespaces: Selector, labels: Selector, pods: SelectedPods) -> list[Workload]:
    """Return the pods that selectors of namespaces and pods select, without pods in the network of a node."""
    return [pod for pod in _matching(namespaces, labels, pods) if not pod.host_network]


def _matching(namespaces: Selector, labels: Selector, pods: SelectedPods) -> list[Workload]:
    keys = sorted(pods.world.select(PodsAcross(namespaces, labels)))
    return [pod for pod in map(pods.world.workloads.__getitem__, keys) if pod.is_pod]


# Peers without effect


def check_peers(context: Context) -> Iterator[Finding]:
    """Report peers that match no pod of the manifests, and peers in namespaces that no manifest has."""
    pods = SelectedPods(context)
    for policy, direction, rule in _rules(pods):
        split = {peer for pair in _split_pairs(rule, direction, pods) for peer in pair}  # EG6304 is about these
        for peer in rule.peers or ():
            selectors = selectors_of(peer, direction)
            if selectors is not None and pods.pods and peer not in split:
                yield from _empty_peer(policy, peer, *selectors, pods, context)


def _empty_peer(
    policy: NetworkPolicy, peer: Peer, namespaces: Selector, labels: Selector, pods: SelectedPods, context: Context
) -> Iterator[Finding]:
    world = pods.world
    homes = [name for name in world.namespaces_in_use() if namespaces.matches(world.namespace(name).labels)]
    is_own = peer.fields == frozenset({"podSelector"})
    is_known = selects_system_pods(labels)
    is_elsewhere = is_known and (not is_own or is_system_namespace(policy.ref.namespace or ""))
    meant = intended_label(labels) if selects_system_namespace(namespaces) else None
    if meant is not None and not select_pods(namespaces, labels, pods):
        key, _, close = meant
        message = f"{policy.ref} selects pods {labels} in namespaces {namespaces}, but no known pod has these labels"
        yield Finding(codes.NO_PEER, message, peer.span, f"did you mean {key}: {close}?", (str(policy.ref),))
    elif not homes:
        is_elsewhere = selects_system_namespace(namespaces, world.namespaces)
        if not is_elsewhere and not is_own and (world.namespaces or NAME_LABEL in dict(namespaces.equalities)):
            message = (
                f"{policy.ref} selects namespaces {namespaces}, but no namespace of the manifests has these labels"
            )
            help_ = _namespace_help(namespaces, world)
            yield Finding(codes.NO_PEER_NAMESPACE, message, peer.span, help_, (str(policy.ref),))
    elif any(home in pods.labels_in for home in homes) and not select_pods(namespaces, labels, pods):
        on_host = [pod.key for pod in _matching(namespaces, labels, pods)]
        if on_host:
            message = f"{policy.ref} does not match {enumerated(on_host)}, in the network of the node"
            help_ = "select the addresses of the nodes by ipBlock"
            yield Finding(codes.HOST_NETWORK, message, peer.span, help_, (str(policy.ref), *on_host[:3]))
        elif not is_elsewhere and not may_come(labels, homes, context):
            yield _no_peer(policy, peer, labels, homes, pods)


def _no_peer(policy: NetworkPolicy, peer: Peer, labels: Selector, homes: Sequence[str], pods: SelectedPods) -> Finding:
    where = enumerated(sorted(homes))
    message = f"{policy.ref} selects pods {labels} in {where}, but no pod there has these labels"
    help_ = _nearest_label(labels, homes, pods) or "write labels that the pods have"
    elsewhere = select_pods(Selector.of(), labels, pods)
    if elsewhere:
        names = enumerated(sorted({pod.namespace for pod in elsewhere}))
        help_ = f"such pods are in {names}: a podSelector alone selects in the policy's own namespace"
    return Finding(codes.NO_PEER, message, peer.span, help_, (str(policy.ref),))


def _nearest_label(labels: Selector, homes: Sequence[str], pods: SelectedPods) -> str | None:
    for key, value in labels.equalities:
        values = {value for home in homes for value in pods.labels_in.get(home, {}).get(key, ())}
        close = nearest_name(value, values) if value not in values else None
        if close is not None:
            return f"nothing is labelled {key}: {value}; did you mean {key}: {close}?"
    return None


def _namespace_help(namespaces: Selector, world: World) -> str:
    known = set(world.namespaces_in_use())
    named = next((value for key, value in namespaces.equalities if key != NAME_LABEL and value in known), None)
    if named is not None:
        return f"for the namespace of this name write {NAME_LABEL}: {named}"
    close = next((close for key, value in namespaces.equalities if (close := intended_namespace(value))), None)
    if close is not None:
        return f"did you mean namespace {close}?"
    return "add the manifests of the namespaces, or write labels that they have"


# AND and OR


def check_and_or(context: Context) -> Iterator[Finding]:
    """Report a namespaceSelector beside a podSelector, with the pods that it allows and those that one entry would."""
    pods = SelectedPods(context)
    for policy, direction, rule in _rules(pods):
        for pair in _split_pairs(rule, direction, pods):
            yield _and_or(policy, direction, pair, pods)


def _split_pairs(rule: NetworkRule, direction: Direction, pods: SelectedPods) -> list[tuple[Peer, Peer]]:
    """Return the pairs of peers that the author probably meant as one.

    A pair counts if one entry with both selectors would select a pod of the manifests. It also counts if the
    podSelector alone selects no pod of them, and either it selects system pods or the policy's namespace has pods.
    """
    pairs: list[tuple[Peer, Peer]] = []
    homes = [pods.world.namespace(name).labels for name in pods.labels_in]
    for pair in pairwise(rule.peers or ()):
        if {peer.fields for peer in pair} == _SINGLE_FIELDS and not (pairs and pair[0] in pairs[-1]):
            by_pod, by_namespace = sorted(pair, key=lambda peer: "namespaceSelector" in peer.fields)
            labels, namespaces = selectors_of(by_pod, direction), selectors_of(by_namespace, direction)
            if labels is None or namespaces is None or labels[1] == Selector.of():
                continue
            is_known = selects_system_pods(labels[1]) or any(labels[0].matches(home) for home in homes)
            if select_pods(namespaces[0], labels[1], pods) or (is_known and not select_pods(*labels, pods)):
                pairs.append(pair)
    return pairs


def _and_or(policy: NetworkPolicy, direction: Direction, peers: tuple[Peer, Peer], pods: SelectedPods) -> Finding:
    by_pod, by_namespace = sorted(peers, key=lambda peer: "namespaceSelector" in peer.fields)
    labels, namespaces = selectors_of(by_pod, direction), selectors_of(by_namespace, direction)
    either = {pod.key for peer in peers for pod in pods_of_peer(peer, direction, pods)}
    both = {pod.key for pod in select_pods(namespaces[0], labels[1], pods)} if namespaces and labels else set()
    message = (
        f"{policy.ref} allows pods {labels[1] if labels else ''} of {policy.ref.namespace}, and ALL pods of namespaces "
        f"{namespaces[0] if namespaces else ''}: {_listed(either)}; as one entry it would be {_listed(both)}"
    )
    help_ = "to allow only the latter, write both selectors in one entry: remove the second dash"
    return Finding(codes.AND_OR, message, peers[1].span, help_, (str(policy.ref),))


def _listed(keys: Iterable[str]) -> str:
    return enumerated(sorted(keys), most=5) or "no pod of the manifests"


# Ports


def check_ports(context: Context) -> Iterator[Finding]:
    """Report names of ports that no destination has, and port numbers of Services."""
    pods = SelectedPods(context)
    for policy, direction, rule in _rules(pods):
        if rule.ports is not None and rule.ports_span is not None:
            yield from _ports(policy, rule, _destinations(policy, direction, rule, pods), pods)


def _destinations(policy: NetworkPolicy, direction: Direction, rule: NetworkRule, pods: SelectedPods) -> list[Workload]:
    if direction is Direction.INGRESS:
        return [pod for pod in pods.by_policy[policy] if not pod.host_network]
    if rule.peers is None:
        return pods.pods
    if any(not peer.fields <= _LABELLED for peer in rule.peers):
        return []  # the ports of destinations outside are unknown
    return list({pod.key: pod for peer in rule.peers for pod in pods_of_peer(peer, direction, pods)}.values())


def _ports(
    policy: NetworkPolicy, rule: NetworkRule, destinations: Sequence[Workload], pods: SelectedPods
) -> Iterator[Finding]:
    declared = [port for pod in destinations for port in (*pod.ports, *pod.init_ports)]
    if not destinations or any(not pod.ports for pod in destinations) or rule.ports_span is None:
        return  # a pod that declares no ports may listen on any
    for item in rule.ports or ():
        where = enumerated([pod.key for pod in destinations])
        subjects = (str(policy.ref), *(pod.key for pod in destinations[:3]))
        if item.name is not None:
            named = [port for port in declared if port.name == item.name]
            if not any(item.transport in (None, port.protocol) for port in named):
                protocol = f"{item.transport} " if item.transport is not None else ""
                message = f"{policy.ref} names the {protocol}port `{item.name}`, but none of {where} has it"
                names = ", ".join(sorted({port.name for port in declared if port.name})) or "their numbers"
                help_ = f"write protocol: {named[0].protocol}" if named else f"write one of {names}"
                yield Finding(codes.PORT_NAME, message, _span(policy, rule.ports_span, item.name), help_, subjects)
        elif item.first is not None and item.last is None and all(port.number != item.first for port in declared):
            lead = _service(item.first, destinations, pods)
            if lead is not None:
                message = f"{policy.ref} names port {item.first}, which none of {where} exposes"
                help_ = f"{item.first} is the port of Service {lead[0]}; write that of its pods, {lead[1]}"
                yield Finding(PORT_NOT_EXPOSED, message, _span(policy, rule.ports_span, item.first), help_, subjects)


def _span(policy: NetworkPolicy, within: Span, text: str | int) -> Span:
    return locating.scalar(policy.span, within, [text])


def _service(port: int, destinations: Sequence[Workload], pods: SelectedPods) -> tuple[str, int] | None:
    """Return a Service with this port, and the different port of its pods."""
    for pod in destinations[:20]:
        for key in pods.world.services_of(pod.key):
            targets = pods.world.target_ports(pods.world.services[key], port, pod)
            if targets and port not in targets:
                return key, targets[0]
    return None


# Addresses


def check_addresses(context: Context) -> Iterator[Finding]:
    """Report blocks with addresses of pods, and exceptions that another entry opens."""
    pods = SelectedPods(context)
    for policy, _, rule in _rules(pods):
        for peer in rule.peers or ():
            inside = [pod.key for pod in pods.pods if not pod.host_network and _holds(peer.when, pod, pods)]
            if inside and peer.fields <= {"ipBlock", "networks"}:
                message = f"{policy.ref} also matches pods by this block: {enumerated(inside)}"
                help_ = "select pods by labels, and exclude their addresses with except, or in an earlier rule"
                yield Finding(codes.POD_ADDRESSES, message, peer.span, help_, (str(policy.ref), *inside[:3]))
            yield from _reopened(policy, peer, rule.peers or ())


def _holds(when: Predicate, pod: Workload, pods: SelectedPods) -> bool:
    address = pods.world.address_of(pod)
    return address is not None and all(
        isinstance(part, Not) != _is_in(part.part if isinstance(part, Not) else part, address)
        for part in conjuncts(when)
    )


def _is_in(part: Predicate, address: str) -> bool:
    return isinstance(part, Is) and isinstance(part.matcher, InNetwork) and part.matcher.contains(address)


def _reopened(policy: NetworkPolicy, peer: Peer, peers: Sequence[Peer]) -> Iterator[Finding]:
    for excepted in _networks(peer.when, excepted=True):
        for other in peers:
            blocks = _networks(other.when, excepted=False)
            if other is not peer and any(_is_inside(excepted, block) for block in blocks):
                inner = _networks(other.when, excepted=True)
                if not any(_is_inside(excepted, hole) for hole in inner):
                    message = f"{policy.ref} leaves {excepted} out of one block, but another entry contains it"
                    help_ = "write the exception in both entries"
                    yield Finding(codes.EXCEPTION_REOPENED, message, other.span, help_, (str(policy.ref),))


def _networks(when: Predicate, *, excepted: bool) -> list[Network]:
    parts = [
        part.part if isinstance(part, Not) else part for part in conjuncts(when) if isinstance(part, Not) == excepted
    ]
    return [
        network
        for part in parts
        if isinstance(part, Is) and isinstance(part.matcher, InNetwork)
        for network in part.matcher.networks
    ]


def _is_inside(inner: Network, outer: Network) -> bool:
    return inner.version == outer.version and inner.prefixlen >= outer.prefixlen and inner.network_address in outer
