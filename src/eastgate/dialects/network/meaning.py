"""The meaning of network policies: from valid documents to the model and the IR."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import PodsAcross, PodsMatching
from eastgate.cluster.points import Direction
from eastgate.cluster.resources import is_audit, selector_of
from eastgate.dialects.base import Read, reader
from eastgate.dialects.network import cluster_shapes, shapes
from eastgate.dialects.network.lowering import PEERS, PortItem, in_domains, on_nodes
from eastgate.dialects.network.model import NetworkPolicy, NetworkRule, NetworkTier, Restriction, make_rule
from eastgate.dialects.network.values import Network, network_of, strict_network_of
from eastgate.ir import Effect, PolicyRef, Predicate
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node, drop_nulls
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

# The three cluster-wide kinds, which have different names for some fields


_PEERS = {Direction.INGRESS: "from", Direction.EGRESS: "to"}
_EFFECTS: Final = {
    "Accept": ("ACCEPT", Effect.ACCEPT),
    "Allow": ("ALLOW", Effect.ACCEPT),
    "Deny": ("DENY", Effect.DENY),
    "Pass": ("PASS", Effect.PASS),
}
_TRANSPORTS: Final = ("tcp", "udp", "sctp")


def admin_policy(document: Document, root: Node, _settings: Settings) -> NetworkPolicy:
    """Return the meaning of an AdminNetworkPolicy."""
    return _policy(document, root, NetworkTier.ADMIN)


def baseline_policy(document: Document, root: Node, _settings: Settings) -> NetworkPolicy:
    """Return the meaning of the BaselineAdminNetworkPolicy."""
    return _policy(document, root, NetworkTier.BASELINE)


def cluster_policy(document: Document, root: Node, _settings: Settings) -> NetworkPolicy:
    """Return the meaning of a ClusterNetworkPolicy."""
    return _policy(document, root, NetworkTier(root["spec"]["tier"].text))


def _policy(document: Document, root: Node, tier: NetworkTier) -> NetworkPolicy:
    spec = root["spec"]
    ref = PolicyRef(document.kind, None, document.name, document.group)
    rules = {
        direction: tuple(
            _cluster_rule(node, index, direction, ref) for index, node in enumerate(spec.get(direction) or ())
        )
        for direction in Direction
    }
    priority = spec.get("priority")
    return NetworkPolicy(
        ref=ref,
        span=document.span,
        targets=(_subject(spec["subject"]),),
        tier=tier,
        priority=priority.number if priority is not None else 0,
        rules={direction: listed for direction, listed in rules.items() if listed},
        subject_span=spec["subject"].span,
        audit=is_audit(root),
    )


def _subject(node: Node) -> PodsAcross:
    namespaces, pods = node.get("namespaces"), node.get("pods")
    if pods is None:
        return PodsAcross(selector_of(namespaces), selector_of(None))
    return PodsAcross(selector_of(pods.get("namespaceSelector")), selector_of(pods["podSelector"]))


def _cluster_rule(node: Node, index: int, direction: Direction, ref: PolicyRef) -> NetworkRule:
    peers = node[_PEERS[direction]]
    ports = node.get("protocols") or node.get("ports")
    return make_rule(
        ref,
        index,
        node,
        direction,
        _EFFECTS[node["action"].text],
        peers=Restriction(peers, tuple(_cluster_peer(peer, direction) for peer in peers)),
        ports=Restriction(ports, tuple(_ports(ports))) if ports is not None else None,
    )


def _cluster_peer(node: Node, direction: Direction) -> Predicate:
    end = PEERS[direction]
    if (pods := node.get("pods")) is not None:
        return end.pods(selector_of(pods.get("namespaceSelector")), selector_of(pods["podSelector"]))
    if (nodes := node.get("nodes")) is not None:
        return on_nodes(selector_of(nodes))
    if (networks := node.get("networks")) is not None:
        parsed = (strict_network_of(network.text) for network in networks)
        return end.networks(network for network in parsed if network is not None)
    if (names := node.get("domainNames")) is not None:
        return in_domains(name.text for name in names)
    return end.pods(selector_of(node["namespaces"]), selector_of(None))


def _ports(nodes: Node) -> Iterator[PortItem]:
    for node in nodes:
        name = node.get("destinationNamedPort") or node.get("namedPort")
        if name is not None:
            yield PortItem(None, name=name.text)
        elif (number := node.get("portNumber")) is not None:
            yield PortItem(_transport(number), number["port"].number)
        elif (ports := node.get("portRange")) is not None:
            yield PortItem(_transport(ports), ports["start"].number, ports["end"].number)
        else:
            yield next(_numbered(node, transport) for transport in _TRANSPORTS if transport in node)


def _transport(node: Node) -> str:
    protocol = node.get("protocol")
    return protocol.text if protocol is not None else "TCP"


def _numbered(node: Node, transport: str) -> PortItem:
    port = node[transport]["destinationPort"]
    if (ports := port.get("range")) is not None:
        return PortItem(transport.upper(), ports["start"].number, ports["end"].number)
    return PortItem(transport.upper(), port["number"].number)


def network_policy(document: Document, root: Node, _settings: Settings) -> NetworkPolicy:
    """Return the meaning of a NetworkPolicy."""
    spec = root.get("spec")
    ref = PolicyRef(document.kind, document.home, document.name, document.group)
    pods = spec.get("podSelector") if spec is not None else None
    types = spec.get("policyTypes") if spec is not None else None
    rules = {direction: _rules(spec, direction, ref) for direction in Direction}
    listed = {item.text for item in types or ()}
    in_force = {
        Direction.INGRESS: "Ingress" in listed or not listed,
        Direction.EGRESS: "Egress" in listed or (not listed and bool(rules[Direction.EGRESS])),
    }
    return NetworkPolicy(
        ref=ref,
        span=document.span,
        targets=(PodsMatching(document.home, selector_of(pods)),),
        tier=NetworkTier.NAMESPACED,
        priority=0,
        rules={direction: rules[direction] for direction in Direction if in_force[direction]},
        subject_span=pods.span if pods is not None else document.span,
        unused=tuple(rule for direction in Direction if not in_force[direction] for rule in rules[direction]),
        types_span=types.span if types is not None and listed else None,
        audit=is_audit(root),
    )


def _rules(spec: Node | None, direction: Direction, ref: PolicyRef) -> tuple[NetworkRule, ...]:
    listed = spec.get(direction) if spec is not None else None
    return tuple(_rule(node, index, direction, ref) for index, node in enumerate(listed or ()))


def _rule(node: Node, index: int, direction: Direction, ref: PolicyRef) -> NetworkRule:
    """Return the meaning of a rule. An empty list of peers or ports means the same as none."""
    peers, ports = _filled(node.get(_PEERS[direction])), _filled(node.get("ports"))
    namespace = ref.namespace or ""
    return make_rule(
        ref,
        index,
        node,
        direction,
        ("ALLOW", Effect.ACCEPT),
        peers=Restriction(peers, tuple(_peer(peer, direction, namespace) for peer in peers))
        if peers is not None
        else None,
        ports=Restriction(ports, tuple(_port(port) for port in ports)) if ports is not None else None,
    )


def _filled(node: Node | None) -> Node | None:
    return node if node is not None and list(node) else None


def _peer(node: Node, direction: Direction, namespace: str) -> Predicate:
    end = PEERS[direction]
    if (block := node.get("ipBlock")) is not None:
        return end.networks([_network(block["cidr"])], [_network(excepted) for excepted in block.get("except") or ()])
    pods = selector_of(node.get("podSelector"))
    if (namespaces := node.get("namespaceSelector")) is not None:
        return end.pods(selector_of(namespaces), pods)
    return end.pods_in(namespace, pods)


def _network(node: Node) -> Network:
    network = network_of(node.text)
    assert network is not None  # noqa: S101 - the shape has checked it
    return network


def _port(node: Node) -> PortItem:
    protocol, port, last = node.get("protocol"), node.get("port"), node.get("endPort")
    transport = protocol.text if protocol is not None else "TCP"
    if port is None:
        return PortItem(transport)
    if isinstance(port.value, str):
        return PortItem(transport, name=port.value)
    return PortItem(transport, port.number, last.number if last is not None else None)


# Reading: the check of a document against its shape, and its meaning


_FORMS: Final[dict[str, tuple[Record[Settings], Callable[[Document, Node, Settings], NetworkPolicy]]]] = {
    "NetworkPolicy": (shapes.NETWORK_POLICY, network_policy),
    "AdminNetworkPolicy": (cluster_shapes.ADMIN_POLICY, admin_policy),
    "BaselineAdminNetworkPolicy": (cluster_shapes.BASELINE_POLICY, baseline_policy),
    "ClusterNetworkPolicy": (cluster_shapes.CLUSTER_POLICY, cluster_policy),
}


def read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> NetworkPolicy | None:
    """Return the policy of a document without errors.

    In a NetworkPolicy, a null means a field left out, except in labels. The definitions of the other kinds refuse
    nulls.
    """
    if document.kind == "NetworkPolicy":
        root = drop_nulls(root, lambda mapping, _name: mapping in ("matchLabels", "labels", "annotations"))
    return _reader(document.kind)(document, root, settings, reporter)


def shape_of(kind: str) -> Record[Settings]:
    """Return the shape of a kind."""
    return _FORMS[kind][0]


@cache
def _reader(kind: str) -> Read[NetworkPolicy]:
    return reader(*_FORMS[kind])
